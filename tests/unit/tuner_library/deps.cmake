set(DEPS fusion_tuner_core)
set(COMPILED_TOGETHER 5)
