set(DEPS fusion_tuner_library fusion_api fusion_server fusion_identity gRPC::grpc++_reflection nlohmann_json::nlohmann_json)
