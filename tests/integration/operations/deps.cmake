set(DEPS nlohmann_json::nlohmann_json)
