set(DEPS fusion_rpc fusion_grpc gRPC::grpc++ nlohmann_json::nlohmann_json)
set(TEST_TIMEOUT 900)  # of a machine that is several times slower than the usual one; most is compiling
# Beside others their times do not become steady, which takes several times as long.
set(SERIAL_TESTS "SubmitTest.*:PredictionTest.*:RankingOptionsTest.Warm*:ModelReportTest.*")
