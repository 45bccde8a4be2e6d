set(DEPS fusion_loop_kernels)
