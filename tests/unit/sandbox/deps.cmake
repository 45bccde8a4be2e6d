set(DEPS fusion_sandbox fusion_proto)
