set(DEPS fusion_api fusion_server fusion_identity fusion_agent)
set(TEST_TIMEOUT 900)  # of the long form
