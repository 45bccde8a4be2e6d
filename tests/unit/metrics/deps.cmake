set(DEPS fusion_server)
