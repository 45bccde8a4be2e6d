set(DEPS fusion_search fusion_parse)
set(COMPILED_TOGETHER 4)
