set(DEPS fusion_server fusion_agent gRPC::grpc++ ${CMAKE_DL_LIBS})
