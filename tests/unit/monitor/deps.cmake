set(DEPS fusion_monitor fusion_grpc_log)
set(COMPILED_TOGETHER 5)
