set(DEPS fusion_api fusion_runner_program)
