#include "server/rpc/rpc_timer.h"

#include <chrono>
#include <string>
#include <utility>

#include "absl/strings/strip.h"

namespace fusion {
namespace {

// "fusion.v1.OptimizerService/Submit" to "OptimizerService/Submit".
std::string MethodName(const char* full) {
  absl::string_view name = absl::StripPrefix(full, "/");
  return std::string(absl::StripPrefix(name, "fusion.v1."));
}

const char* CodeName(grpc::StatusCode code) {
  static constexpr const char* kNames[] = {
      "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
      "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
      "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
      "DATA_LOSS", "UNAUTHENTICATED"};
  return code >= 0 && code <= 16 ? kNames[code] : "UNKNOWN";
}

class RpcTimer : public grpc::experimental::Interceptor {
 public:
  RpcTimer(MetricFamily<Histogram>& seconds, std::string method)
      : seconds_(seconds), method_(std::move(method)), start_(std::chrono::steady_clock::now()) {}
  // A call whose caller has gone is given no status.
  ~RpcTimer() override {
    if (!told_) Tell("CANCELLED");
  }
  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(grpc::experimental::InterceptionHookPoints::PRE_SEND_STATUS))
      Tell(CodeName(methods->GetSendStatus().error_code()));
    methods->Proceed();
  }

 private:
  void Tell(const char* code) {
    told_ = true;
    seconds_.With({method_, code})
        .Observe(std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count());
  }
  MetricFamily<Histogram>& seconds_;
  const std::string method_;
  const std::chrono::steady_clock::time_point start_;
  bool told_ = false;
};

class RpcTimers : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit RpcTimers(MetricFamily<Histogram>& seconds) : seconds_(seconds) {}
  grpc::experimental::Interceptor* CreateServerInterceptor(grpc::experimental::ServerRpcInfo* info) override {
    return new RpcTimer(seconds_, MethodName(info->method()));
  }

 private:
  MetricFamily<Histogram>& seconds_;
};

}  // namespace

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeRpcTimer(
    MetricFamily<Histogram>& seconds) {
  return std::make_unique<RpcTimers>(seconds);
}

}  // namespace fusion
