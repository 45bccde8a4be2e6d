set(DEPS fusion_agent gRPC::grpc++ ${CMAKE_DL_LIBS})
