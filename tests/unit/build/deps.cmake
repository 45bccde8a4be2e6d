set(DEPS fusion_build ${CMAKE_DL_LIBS})
set(COMPILED_TOGETHER 5)
