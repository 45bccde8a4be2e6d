set(DEPS nlohmann_json::nlohmann_json)
# Beside others their times do not become steady, which takes several times as long.
set(SERIAL_TESTS "FarmTest.*")
