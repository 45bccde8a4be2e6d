#include "server/metrics/server_metrics.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/monitor/process_metrics.h"
#include "base/status_macros.h"

#ifndef FUSION_VERSION
#define FUSION_VERSION "unknown"
#endif

namespace fusion {
namespace {

constexpr int kAttemptsPerRead = 1000;

const char* KindLabel(TaskKind kind) { return kind == TaskKind::kBuild ? "BUILD" : "TIME"; }

double Seconds(Timestamp from, Timestamp to) { return std::chrono::duration<double>(to - from).count(); }

// Waiting for a worker may take hours.
std::vector<double> QueueBounds() {
  return {0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600, 14400, 86400};
}

}  // namespace

// Reads the state of the farm at each collection. Used by one thread at a time.
class ServerMetrics::FarmCollector {
 public:
  FarmCollector(Metrics& registry, Store& store, const Dispatcher& dispatcher,
                std::pair<int64_t, int64_t> seen)
      : store_(store),
        dispatcher_(dispatcher),
        last_claim_(seen.first),
        last_end_(seen.second),
        claimed_(registry.AddCounter("fusion_tasks_claimed_total", "Tasks given to workers.", {"kind"})),
        ended_(registry.AddCounter("fusion_tasks_ended_total", "Attempts of tasks that ended, and how.",
                                   {"kind", "outcome"})),
        leases_expired_(
            registry.AddCounter("fusion_leases_expired_total",
                                "Attempts that ended because their worker was silent for a lease.")),
        workers_lost_(
            registry.AddCounter("fusion_worker_lost_total",
                                "Attempts whose worker was lost: silent, or replaced by a new process.")),
        queue_seconds_(registry.AddHistogram(
            "fusion_task_queue_seconds", "Time that tasks waited for a worker.", QueueBounds(), {"kind"})),
        run_seconds_(registry.AddHistogram("fusion_task_run_seconds", "Time from a task's claim to its end.",
                                           DurationBounds(), {"kind"})),
        queued_(registry.AddGauge("fusion_tasks_queued", "Tasks that wait for a worker.", {"kind"})),
        running_(registry.AddGauge("fusion_tasks_running", "Tasks that workers have.", {"kind"})),
        jobs_(registry.AddGauge("fusion_jobs", "Jobs that have not ended.", {"state"})),
        connected_(registry.AddGauge("fusion_workers_connected", "Workers that have called lately.")),
        draining_(registry.AddGauge("fusion_workers_draining", "Of these, those that take no new tasks.")),
        devices_(registry.AddGauge("fusion_devices", "Devices of connected workers.", {"health"})),
        damaged_blobs_(
            registry.AddCounter("fusion_damaged_blobs_total",
                                "Binaries and folders whose bytes were found damaged in the store.")),
        rebuilt_blobs_(registry.AddCounter("fusion_rebuilt_blobs_total",
                                           "Of these, those that were built again and stored.")),
        bytes_(registry.AddGauge("fusion_store_bytes", "Size of the database with its write-ahead log.")) {
    for (const char* kind : {"BUILD", "TIME"}) claimed_.With({kind});
  }

  void Collect() {
    if (absl::Status status = CollectStore(); !status.ok())
      spdlog::warn("metrics: the store does not answer: {}", status.ToString());
    double connected = 0, draining = 0, good = 0, out = 0;
    for (const v1::Worker& worker : dispatcher_.Workers()) {
      if (!worker.connected()) continue;
      ++connected;
      draining += worker.draining() ? 1 : 0;
      std::set<std::string> taken_out;
      for (const v1::DeviceProblem& problem : worker.problems()) taken_out.insert(problem.device_uuid());
      out += static_cast<double>(taken_out.size());
      for (const v1::DeviceDescription& device : worker.devices())
        good += taken_out.contains(device.uuid()) ? 0 : 1;
    }
    connected_->Set(connected);
    draining_->Set(draining);
    devices_.With({"ok"}).Set(good);
    devices_.With({"out"}).Set(out);
  }

 private:
  absl::Status CollectStore() {
    while (true) {
      FUSION_ASSIGN_OR_RETURN(std::vector<AttemptRecord> claims,
                              store_.ClaimsAfter(last_claim_, kAttemptsPerRead));
      for (const AttemptRecord& attempt : claims) {
        claimed_.With({KindLabel(attempt.kind)}).Add();
        queue_seconds_.With({KindLabel(attempt.kind)}).Observe(Seconds(attempt.queued, attempt.claimed));
        last_claim_ = attempt.number;
      }
      if (claims.size() < kAttemptsPerRead) break;
    }
    while (true) {
      FUSION_ASSIGN_OR_RETURN(std::vector<AttemptRecord> ends, store_.EndsAfter(last_end_, kAttemptsPerRead));
      for (const AttemptRecord& attempt : ends) {
        ended_.With({KindLabel(attempt.kind), attempt.ended_how}).Add();
        run_seconds_.With({KindLabel(attempt.kind)}).Observe(Seconds(attempt.claimed, attempt.ended));
        if (attempt.ended_how == "LEASE_EXPIRED") leases_expired_->Add();
        if (attempt.ended_how == "LEASE_EXPIRED" || attempt.ended_how == "WORKER_GONE") workers_lost_->Add();
        last_end_ = attempt.ended_order;
      }
      if (ends.size() < kAttemptsPerRead) break;
    }
    FUSION_ASSIGN_OR_RETURN(StoreStatistics statistics, store_.Statistics());
    queued_.With({"BUILD"}).Set(static_cast<double>(statistics.queued_builds));
    queued_.With({"TIME"}).Set(static_cast<double>(statistics.queued_timings));
    running_.With({"BUILD"}).Set(static_cast<double>(statistics.running_builds));
    running_.With({"TIME"}).Set(static_cast<double>(statistics.running_timings));
    jobs_.With({"QUEUED"}).Set(static_cast<double>(statistics.queued_jobs));
    jobs_.With({"RUNNING"}).Set(static_cast<double>(statistics.running_jobs));
    bytes_->Set(static_cast<double>(statistics.bytes));
    damaged_blobs_->Add(static_cast<double>(statistics.damaged_blobs - seen_.damaged_blobs));
    rebuilt_blobs_->Add(static_cast<double>(statistics.rebuilt_blobs - seen_.rebuilt_blobs));
    seen_ = statistics;
    return absl::OkStatus();
  }

  Store& store_;
  const Dispatcher& dispatcher_;
  int64_t last_claim_, last_end_;
  StoreStatistics seen_;  // at the last collection
  MetricFamily<Counter>&claimed_, &ended_, &leases_expired_, &workers_lost_;
  MetricFamily<Histogram>&queue_seconds_, &run_seconds_;
  MetricFamily<Gauge>&queued_, &running_, &jobs_, &connected_, &draining_, &devices_;
  MetricFamily<Counter>&damaged_blobs_, &rebuilt_blobs_;
  MetricFamily<Gauge>& bytes_;
};

ServerMetrics::ServerMetrics()
    : jobs_submitted(registry.AddCounter("fusion_jobs_submitted_total", "Jobs that were taken.")),
      jobs_ended(registry.AddCounter("fusion_jobs_ended_total", "Jobs that ended.", {"state"})),
      build_cache_hits(
          registry.AddCounter("fusion_build_cache_hits_total",
                              "Builds that jobs needed and that were known, or under way for another.")),
      build_cache_misses(registry.AddCounter("fusion_build_cache_misses_total",
                                             "Builds that jobs needed and that workers had to do.")),
      build_cache_bytes(registry.AddGauge(
          "fusion_build_cache_bytes", "Binaries of builds in the cache, as of the last look at its size.")),
      build_cache_evictions(registry.AddCounter("fusion_build_cache_evictions_total",
                                                "Binaries removed from the build cache to keep its size.")),
      build_cache_evicted_bytes(
          registry.AddCounter("fusion_build_cache_evicted_bytes_total", "Bytes of these binaries.")),
      build_seconds(registry.AddHistogram("fusion_build_seconds",
                                          "Time that workers' compilers took for a build.", DurationBounds(),
                                          {"outcome"})),
      stage_seconds(registry.AddHistogram("fusion_stage_seconds",
                                          "Time that jobs spent in a stage of the pipeline.",
                                          DurationBounds(), {"stage"})),
      rpc_seconds(registry.AddHistogram("fusion_rpc_seconds",
                                        "Time of calls; Synchronize and WatchJob wait for news.",
                                        DurationBounds(), {"method", "code"})),
      refused_measurements(
          registry.AddCounter("fusion_refused_measurements_total",
                              "Measurements of programs that workers reported and that cannot be right.")) {
  for (const char* state : {"SUCCEEDED", "FAILED", "CANCELLED"}) jobs_ended.With({state});
  AddProcessMetrics("fusion-server", FUSION_VERSION, &registry);
}

absl::Status ServerMetrics::Watch(Store& store, const Dispatcher& dispatcher) {
  absl::StatusOr<std::pair<int64_t, int64_t>> seen = store.LastAttempts();
  if (!seen.ok()) return seen.status();
  farm_ = std::make_shared<FarmCollector>(registry, store, dispatcher, *seen);
  registry.OnCollect([farm = farm_] { farm->Collect(); });
  return absl::OkStatus();
}

}  // namespace fusion
