set(DEPS fusion_connection)
set(COMPILED_TOGETHER 3)
