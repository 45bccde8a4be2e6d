set(DEPS fusion_rpc fusion_grpc gRPC::grpc++ nlohmann_json::nlohmann_json)
set(COMPILED_TOGETHER 4)
set(TEST_TIMEOUT 900)  # of a machine that is several times slower than the usual one; most is compiling
