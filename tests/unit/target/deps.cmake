set(DEPS fusion_target)
