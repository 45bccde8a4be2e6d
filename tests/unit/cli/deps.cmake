set(DEPS fusion_cli_text)
