set(DEPS fusion_measure fusion_catalog)
