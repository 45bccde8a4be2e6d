set(DEPS fusion_api fusion_service fusion_agent)
set(TEST_TIMEOUT 900)  # of the long form
