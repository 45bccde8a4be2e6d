set(DEPS fusion_build ${CMAKE_DL_LIBS})
