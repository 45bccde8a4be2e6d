set(DEPS fusion_store SQLite::SQLite3)
set(TEST_TIMEOUT 600)
