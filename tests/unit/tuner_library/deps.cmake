set(DEPS fusion_tuner_core)
