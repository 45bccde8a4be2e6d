# Random loops are those of the property tests.
list(APPEND sources ${CMAKE_CURRENT_SOURCE_DIR}/property/loop_kernels/host_run.cc ${CMAKE_CURRENT_SOURCE_DIR}/property/loop_kernels/random_programs.cc)
set(DEPS fusion_measure fusion_build fusion_loop_kernels fusion_target fusion_codegen ${CMAKE_DL_LIBS})
set(TEST_TIMEOUT 600)
