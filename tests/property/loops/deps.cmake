set(DEPS fusion_loops)
