set(DEPS fusion_service fusion_agent gRPC::grpc++ ${CMAKE_DL_LIBS})
