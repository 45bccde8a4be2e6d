set(DEPS fusion_partition)
