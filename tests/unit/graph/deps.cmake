set(DEPS fusion_parse)
set(COMPILED_TOGETHER 3)
