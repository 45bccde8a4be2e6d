# The programs of build/bin are used as well.
set(DEPS fusion_grpc)
set(TEST_TIMEOUT 900)
