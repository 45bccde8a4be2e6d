set(DEPS fusion_cover fusion_search)
