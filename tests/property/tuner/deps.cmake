set(DEPS fusion_tuning_search)
