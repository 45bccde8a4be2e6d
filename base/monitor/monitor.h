// A program answers those who watch it: GET /metrics for Prometheus, /healthz and /readyz for supervisors.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/monitor/http_server.h"
#include "base/monitor/metrics.h"

namespace fusion {

struct MonitorOptions {
  HttpOptions http;
  // When it is not OK, /healthz says 503 and the message. It is called from one thread of the server's.
  std::function<absl::Status()> healthy;
  // Does the same for /readyz: it says whether work should be sent here. Not ready is no fault.
  std::function<absl::Status()> ready;
};

// The server serves until it is destroyed. The metrics outlive it. Statuses are those of HttpServer::Start.
absl::StatusOr<std::unique_ptr<HttpServer>> StartMonitor(const MonitorOptions& options, Metrics* metrics);

}  // namespace fusion
