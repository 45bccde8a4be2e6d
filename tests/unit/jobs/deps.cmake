set(DEPS fusion_jobs fusion_upkeep)
