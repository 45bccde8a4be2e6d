set(DEPS fusion_jobs fusion_upkeep)
set(COMPILED_TOGETHER 4)
