// What a server counts, under the names that dashboards know.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/monitor/metrics.h"
#include "db/store/store.h"
#include "server/dispatch/dispatcher.h"

namespace fusion {

// Thread safe. What happens in a job is counted where it happens, by the members; what happens to tasks is
// read from the store, where every claim and its end is noted, so that the figures are those of what is
// stored and the queue knows nothing of them.
class ServerMetrics {
 public:
  ServerMetrics();

  Metrics registry;
  MetricFamily<Counter>& jobs_submitted;
  MetricFamily<Counter>& jobs_ended;  // {state}
  MetricFamily<Counter>& build_cache_hits;
  MetricFamily<Counter>& build_cache_misses;
  MetricFamily<Gauge>& build_cache_bytes;
  MetricFamily<Counter>& build_cache_evictions;
  MetricFamily<Counter>& build_cache_evicted_bytes;
  MetricFamily<Histogram>& build_seconds;  // {outcome}; of builds that workers did, as they say
  MetricFamily<Histogram>& stage_seconds;  // {stage}
  MetricFamily<Histogram>& rpc_seconds;    // {method,code}
  MetricFamily<Counter>& refused_measurements;

  // From now on collections also tell of tasks, workers, devices and the store; attempts of before are not
  // counted. Both must outlive collections. Call once.
  absl::Status Watch(Store& store, const Dispatcher& dispatcher);

 private:
  class FarmCollector;
  std::shared_ptr<FarmCollector> farm_;
};

}  // namespace fusion
