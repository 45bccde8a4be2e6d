set(DEPS fusion_store)
set(COMPILED_TOGETHER 4)
