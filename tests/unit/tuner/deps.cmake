set(DEPS fusion_parameter_space)
