set(DEPS fusion_store)
