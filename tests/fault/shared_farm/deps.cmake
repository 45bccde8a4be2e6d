set(DEPS fusion_api fusion_service fusion_identity fusion_agent)
