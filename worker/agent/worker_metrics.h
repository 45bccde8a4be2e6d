// Metrics of a worker, under the names that dashboards know.
#pragma once

#include <chrono>
#include <string>

#include "base/monitor/metrics.h"
#include "fusion/v1/worker.pb.h"

namespace fusion {

// Thread safe.
class WorkerMetrics {
 public:
  WorkerMetrics();

  Metrics registry;
  MetricFamily<Gauge>& tasks_running;      // {kind}
  MetricFamily<Counter>& tasks_ended;      // {kind,outcome}
  MetricFamily<Histogram>& task_seconds;   // {kind}
  MetricFamily<Gauge>& connected;          // 1 while the server answers
  MetricFamily<Counter>& failed_calls;     // of Synchronize
  MetricFamily<Counter>& runner_restarts;  // {device}
  MetricFamily<Counter>& timing_seconds;   // {device,part}: TimeSpent, and what the lane waited for
  MetricFamily<Gauge>& spare_runners;      // {device}
  MetricFamily<Gauge>& device_healthy;     // {device}; 0 until a known kernel has run again

  // A task has begun.
  void Began(const v1::Assignment& assignment);
  // A task that began at `start` has ended as the report says.
  void Ended(const v1::Assignment& assignment, const v1::TaskReport& report,
             std::chrono::steady_clock::time_point start);
};

// Returns "OK", "COMPILE_ERROR" ... (build), "DONE" or "NOT_MEASURED" (timing), "WORKER_FAILED" (either).
std::string OutcomeOf(const v1::TaskReport& report);

}  // namespace fusion
