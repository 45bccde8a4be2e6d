#include "worker/agent/worker_metrics.h"

#include "base/monitor/process_metrics.h"

#ifndef FUSION_VERSION
#define FUSION_VERSION "unknown"
#endif

namespace fusion {
namespace {

const char* KindOf(const v1::Assignment& assignment) { return assignment.has_time() ? "TIME" : "BUILD"; }

}  // namespace

WorkerMetrics::WorkerMetrics()
    : tasks_running(
          registry.AddGauge("fusion_worker_tasks_running", "Tasks that this worker runs.", {"kind"})),
      tasks_ended(registry.AddCounter("fusion_worker_tasks_ended_total", "Tasks that ended here, and how.",
                                      {"kind", "outcome"})),
      task_seconds(registry.AddHistogram("fusion_worker_task_seconds",
                                         "Time from a task's assignment to its end.", DurationBounds(),
                                         {"kind"})),
      connected(registry.AddGauge("fusion_worker_connected", "1 while the server answers, else 0.")),
      failed_calls(
          registry.AddCounter("fusion_worker_failed_calls_total", "Calls that the server did not answer.")),
      runner_restarts(registry.AddCounter("fusion_worker_runner_restarts_total",
                                          "Runners that were started because one before had ended.",
                                          {"device"})),
      timing_seconds(registry.AddCounter("fusion_worker_timing_seconds_total",
                                         "Where the time of timings went: parts of the runner's work and of "
                                         "the worker's; idle: until the next one began.",
                                         {"device", "part"})),
      spare_runners(registry.AddGauge("fusion_worker_spare_runners",
                                      "Runners that have the device open and wait to replace one that ends.",
                                      {"device"})),
      device_healthy(registry.AddGauge(
          "fusion_worker_device_healthy",
          "1, or 0 while a device must run a known kernel before it is used again.", {"device"})) {
  for (const char* kind : {"BUILD", "TIME"}) tasks_running.With({kind});
  AddProcessMetrics("fusion-worker", FUSION_VERSION, &registry);
}

void WorkerMetrics::Began(const v1::Assignment& assignment) {
  tasks_running.With({KindOf(assignment)}).Add(1);
}

void WorkerMetrics::Ended(const v1::Assignment& assignment, const v1::TaskReport& report,
                          std::chrono::steady_clock::time_point start) {
  const char* kind = KindOf(assignment);
  tasks_running.With({kind}).Add(-1);
  tasks_ended.With({kind, OutcomeOf(report)}).Add();
  task_seconds.With({kind}).Observe(
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}

std::string OutcomeOf(const v1::TaskReport& report) {
  if (report.has_build()) return v1::Outcome_Name(report.build().outcome());
  if (report.has_time()) return report.time().failure().empty() ? "DONE" : "NOT_MEASURED";
  return "WORKER_FAILED";
}

}  // namespace fusion
