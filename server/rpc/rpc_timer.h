// Measures how long the calls of a gRPC server take.
#pragma once

#include <grpcpp/support/server_interceptor.h>

#include <memory>

#include "base/monitor/metrics.h"

namespace fusion {

// Times the calls of a gRPC server into `seconds`, by method and code.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeRpcTimer(
    MetricFamily<Histogram>& seconds);

}  // namespace fusion
