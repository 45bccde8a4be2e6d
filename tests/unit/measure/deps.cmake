set(DEPS fusion_measure fusion_runner_program ${CMAKE_DL_LIBS})
