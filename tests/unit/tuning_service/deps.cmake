set(DEPS fusion_tuner)
set(COMPILED_TOGETHER 4)
