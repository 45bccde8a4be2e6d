set(DEPS fusion_rpc fusion_plots)
