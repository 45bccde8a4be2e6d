// The tuning service counts these metrics.
#pragma once

#include "base/monitor/metrics.h"

namespace fusion {

// Thread safe.
struct TunerMetrics {
  explicit TunerMetrics(Metrics& registry);

  MetricFamily<Counter>& reports;          // reports that were taken
  MetricFamily<Counter>& reports_refused;  // reports that made no sense
  MetricFamily<Counter>& batches_repeated;
  MetricFamily<Counter>& proposals;  // given to programs
  MetricFamily<Counter>& commit_failures;
  MetricFamily<Gauge>& tunings;   // in memory
  MetricFamily<Gauge>& programs;  // connected
  MetricFamily<Histogram>& commit_seconds;
};

}  // namespace fusion
