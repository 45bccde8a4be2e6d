set(DEPS fusion_parse)
