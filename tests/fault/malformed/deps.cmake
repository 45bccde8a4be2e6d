set(DEPS fusion_server fusion_parse fusion_store)
set(TEST_TIMEOUT 600)
