set(DEPS fusion_skeletons)
