set(DEPS fusion_dispatch fusion_store fusion_proto)
set(TEST_TIMEOUT 900)
