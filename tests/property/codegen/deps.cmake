set(DEPS fusion_codegen fusion_search fusion_parse fusion_model ${CMAKE_DL_LIBS})
set(TEST_TIMEOUT 900)
