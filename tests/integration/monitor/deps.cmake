set(DEPS fusion_monitor)
