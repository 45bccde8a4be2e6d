set(DEPS fusion_cli_text)
set(COMPILED_TOGETHER 4)
