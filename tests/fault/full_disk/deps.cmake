set(DEPS fusion_service fusion_agent)
set(TEST_TIMEOUT 600)
