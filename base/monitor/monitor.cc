#include "base/monitor/monitor.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

constexpr char kPlainText[] = "text/plain; charset=utf-8";
constexpr char kExposition[] = "text/plain; version=0.0.4; charset=utf-8";

HttpServer::Route StatusRoute(std::function<absl::Status()> check) {
  return [check = std::move(check)] {
    const absl::Status status = check ? check() : absl::OkStatus();
    if (status.ok()) return HttpAnswer{200, kPlainText, "ok\n"};
    return HttpAnswer{503, kPlainText, absl::StrCat(status.message(), "\n")};
  };
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> StartMonitor(const MonitorOptions& options, Metrics* metrics) {
  return HttpServer::Start(options.http, {{"/metrics",
                                           [metrics] {
                                             return HttpAnswer{200, kExposition, metrics->Text()};
                                           }},
                                          {"/healthz", StatusRoute(options.healthy)},
                                          {"/readyz", StatusRoute(options.ready)}});
}

}  // namespace fusion
