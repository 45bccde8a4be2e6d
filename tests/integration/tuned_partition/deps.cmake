set(DEPS fusion_tuner_library)
