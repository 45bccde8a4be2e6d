#include "server/tuner/tuner_metrics.h"

namespace fusion {

TunerMetrics::TunerMetrics(Metrics& registry)
    : reports(
          registry.AddCounter("fusion_tuning_reports_total", "Reports of running programs that were taken.")),
      reports_refused(
          registry.AddCounter("fusion_tuning_reports_refused_total", "Reports that made no sense.")),
      batches_repeated(
          registry.AddCounter("fusion_tuning_batches_repeated_total",
                              "Batches of reports that had been taken before, and counted nothing.")),
      proposals(
          registry.AddCounter("fusion_tuning_proposals_total", "Configurations given to programs to try.")),
      commit_failures(registry.AddCounter("fusion_tuning_commit_failures_total",
                                          "Transactions of reports that failed, and are tried again.")),
      tunings(registry.AddGauge("fusion_tunings_live", "Sections that connected programs tune.")),
      programs(registry.AddGauge("fusion_tuning_programs_connected", "Programs that tune now.")),
      commit_seconds(registry.AddHistogram(
          "fusion_tuning_commit_seconds", "Time that a transaction of reports took.",
          {0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1, 5})) {}

}  // namespace fusion
