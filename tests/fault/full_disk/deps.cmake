set(DEPS fusion_server fusion_agent)
set(TEST_TIMEOUT 600)
