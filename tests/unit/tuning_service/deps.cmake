set(DEPS fusion_tuner)
