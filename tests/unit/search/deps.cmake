set(DEPS fusion_search fusion_parse)
