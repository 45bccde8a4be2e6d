# The programs of build/bin, run as a user does; the stream against a server in the test.
set(DEPS fusion_api fusion_server fusion_grpc nlohmann_json::nlohmann_json)
