// Counts what happens in a server, under the names that dashboards know.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/monitor/metrics.h"
#include "db/store/store.h"
#include "server/dispatch/dispatcher.h"

namespace fusion {

// Thread safe. Events of a job are counted where they happen, by the members; events of tasks are read from
// the store, where every claim and its end is noted, so that the figures agree with what is stored and the
// queue knows nothing of them.
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
  MetricFamily<Histogram>& build_seconds;  // {outcome}; builds by workers, as they report them
  MetricFamily<Histogram>& stage_seconds;  // {stage}
  MetricFamily<Histogram>& rpc_seconds;    // {method,code}
  MetricFamily<Counter>& refused_measurements;

  // From now on collections also tell of tasks, workers, devices and the store; earlier attempts are not
  // counted. Both must outlive collections. Call once.
  absl::Status Watch(Store& store, const Dispatcher& dispatcher);

 private:
  class FarmCollector;
  std::shared_ptr<FarmCollector> farm_;
};

}  // namespace fusion
