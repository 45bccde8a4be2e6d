set(DEPS fusion_monitor fusion_grpc_log)
