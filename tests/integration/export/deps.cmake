set(DEPS fusion_server fusion_build fusion_cli_text ${CMAKE_DL_LIBS})
set(TEST_TIMEOUT 600)
