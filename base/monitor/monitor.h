// What a program answers to those who watch it: GET /metrics for Prometheus, /healthz and /readyz for
// supervisors.
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
  // Not OK: /healthz says 503 and the message. Called from one thread of the server's.
  std::function<absl::Status()> healthy;
  // The same for /readyz: whether work should be sent here. Not ready is no fault.
  std::function<absl::Status()> ready;
};

// Serves until it is destroyed. The metrics outlive the server. Statuses: as HttpServer::Start.
absl::StatusOr<std::unique_ptr<HttpServer>> StartMonitor(const MonitorOptions& options, Metrics* metrics);

}  // namespace fusion
