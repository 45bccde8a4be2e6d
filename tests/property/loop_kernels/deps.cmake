set(DEPS fusion_loop_kernels fusion_target fusion_codegen)
set(TEST_TIMEOUT 600)
