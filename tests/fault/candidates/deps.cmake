set(DEPS fusion_measure fusion_runner_program ${CMAKE_DL_LIBS})
set(TEST_TIMEOUT 1800)  # of the long form
