set(DEPS fusion_service_status fusion_grpc gRPC::grpc++ nlohmann_json::nlohmann_json)
set(COMPILED_TOGETHER 4)
