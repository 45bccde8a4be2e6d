set(DEPS fusion_api fusion_service fusion_identity gRPC::grpc++_reflection nlohmann_json::nlohmann_json)
