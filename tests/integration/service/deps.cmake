set(DEPS fusion_api fusion_runner_program)
# What is remembered depends on what was measured: noise can make a measured kernel so slow that it is not looked at again.
set(SERIAL_TESTS "RememberedKernelsTest.*")
set(COMPILED_TOGETHER 4)
set(TEST_TIMEOUT 900)  # of a machine that is several times slower than the usual one; most is compiling
