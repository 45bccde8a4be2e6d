set(COMPILED_TOGETHER 4)
set(DEPS fusion_rpc fusion_plots)
