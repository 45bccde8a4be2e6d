set(DEPS fusion_api fusion_runner_program)
# What is remembered depends on what was measured: noise can make a measured kernel so slow that it is not looked at again. And where other
# tests take the processors, times do not become steady, which takes several times as long.
set(SERIAL_TESTS "RememberedKernelsTest.*:RoutineBenchmarkTest.*:WarmRankingTest.*")
set(TEST_TIMEOUT 900)  # of a machine that is several times slower than the usual one; most is compiling
