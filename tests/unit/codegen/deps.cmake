set(DEPS fusion_codegen fusion_search fusion_parse)
