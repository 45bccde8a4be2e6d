#include "server/tuner/tuning_messages.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "server/tuner/declared_section.h"
#include "server/tuner/run_statistics.h"

namespace fusion {
namespace {

void SetPoint(const std::string& bytes, v1::Configuration* configuration) {
  for (const double value : DecodePoint(bytes, bytes.size() / sizeof(double)))
    configuration->add_values(value);
}

// Reading a clock takes about as long as it tells apart: 25 ns where no program says better. Differences of a
// tenth of a run are then lost in it.
constexpr double kUsualClockSeconds = 25e-9;
constexpr double kClocksOfARun = 10;

bool IsBelowClock(const v1::Tuning& tuning) {
  const v1::TuningObjective& objective = tuning.declaration().objective();
  if (!objective.name().empty() && objective.name() != "time") return false;
  if (!objective.unit().empty() && objective.unit() != "s") return false;
  return tuning.best_value() <
         kClocksOfARun * std::max(kUsualClockSeconds, tuning.declaration().clock_seconds());
}

google::protobuf::Timestamp TimeMessage(Timestamp time) {
  google::protobuf::Timestamp message;
  const int64_t micros = time.time_since_epoch().count();
  message.set_seconds(micros / 1'000'000);
  message.set_nanos(static_cast<int32_t>(micros % 1'000'000) * 1000);
  return message;
}

}  // namespace

v1::Tuning TuningMessage(const TuningRecord& record) {
  v1::Tuning tuning;
  tuning.set_name(record.id);
  tuning.mutable_declaration()->ParseFromString(record.declaration);
  *tuning.mutable_create_time() = TimeMessage(record.created);
  if (record.reports > 0) *tuning.mutable_update_time() = TimeMessage(record.reported);
  const TuningProgress& progress = record.progress;
  tuning.set_generation(static_cast<uint64_t>(progress.generation));
  v1::TuningPhase phase = v1::TUNING_PHASE_UNSPECIFIED;
  v1::TuningPhase_Parse(progress.phase, &phase);
  tuning.set_phase(phase);
  v1::Provenance provenance = v1::PROVENANCE_UNSPECIFIED;
  v1::Provenance_Parse(progress.provenance, &provenance);
  tuning.set_provenance(provenance);
  tuning.set_provenance_tuning(progress.provenance_tuning);
  SetPoint(progress.best.empty() ? record.defaults : progress.best, tuning.mutable_best());
  tuning.set_best_value(progress.best_value);
  tuning.set_best_relative_error(progress.best_relative_error);
  tuning.set_runs(static_cast<uint64_t>(record.runs));
  tuning.set_failures(static_cast<uint64_t>(record.failures));
  tuning.set_configurations(static_cast<uint64_t>(record.configurations));
  tuning.set_drifts(static_cast<uint64_t>(progress.drifts));
  tuning.set_exploration_excess(record.exploration_excess);
  tuning.set_total_value(record.total_value);
  return tuning;
}

void RankConfigurations(const std::vector<TuningConfigurationRecord>& configurations,
                        const std::string& defaults, v1::TuningDetails& details) {
  v1::Tuning& tuning = *details.mutable_tuning();
  const bool maximize = tuning.declaration().objective().maximize();
  struct Ranked {
    const TuningConfigurationRecord* record;
    RunStatistics runs;
    std::vector<double> point;
    double believed = 0;
  };
  std::vector<Ranked> ranked;
  RunNoise noise;
  for (const TuningConfigurationRecord& record : configurations) {
    ranked.push_back({&record,
                      {static_cast<uint64_t>(record.count), record.mean, record.squared_deviations,
                       record.minimum, static_cast<uint64_t>(record.failures)},
                      DecodePoint(record.configuration, record.configuration.size() / sizeof(double))});
    noise.Add(ranked.back().runs);
  }
  for (Ranked& configuration : ranked) configuration.believed = noise.Believed(configuration.runs, maximize);
  std::sort(ranked.begin(), ranked.end(), [](const Ranked& a, const Ranked& b) {
    return std::tie(a.believed, a.point) < std::tie(b.believed, b.point);
  });
  const Ranked* of_defaults = nullptr;
  for (const Ranked& configuration : ranked) {
    const RunStatistics& runs = configuration.runs;
    v1::ConfigurationStatistics& statistics = *details.add_configurations();
    SetPoint(configuration.record->configuration, statistics.mutable_configuration());
    statistics.set_count(runs.count);
    statistics.set_failures(runs.failures);
    if (configuration.record->configuration == defaults) of_defaults = &configuration;
    if (runs.count == 0) continue;
    statistics.set_mean(runs.mean);
    statistics.set_minimum(runs.minimum);
    if (runs.count > 1)
      statistics.set_standard_deviation(
          std::sqrt(configuration.record->squared_deviations / static_cast<double>(runs.count - 1)));
    statistics.set_expected(noise.Expected(runs, maximize));
    statistics.set_relative_error(noise.RelativeError(runs));
  }
  if (of_defaults != nullptr && of_defaults->runs.works()) {
    tuning.set_default_value(of_defaults->runs.mean);
    tuning.set_default_relative_error(noise.RelativeError(of_defaults->runs));
  }
  if (ranked.empty() || !ranked.front().runs.works()) return;
  const Ranked& best = ranked.front();
  tuning.mutable_best()->clear_values();
  SetPoint(best.record->configuration, tuning.mutable_best());
  tuning.set_best_value(best.runs.mean);
  tuning.set_best_relative_error(noise.RelativeError(best.runs));
  tuning.set_below_clock(IsBelowClock(tuning));
  if (of_defaults == nullptr || tuning.below_clock()) return;
  // A default that does not work is worse than whatever does.
  const double gain = of_defaults->runs.Cost(maximize) - best.runs.Cost(maximize);
  tuning.set_better_than_default(
      gain > kSeparated * std::hypot(tuning.best_relative_error(), tuning.default_relative_error()));
}

v1::ConvergencePoint ConvergenceMessage(const TuningConvergenceRecord& record) {
  v1::ConvergencePoint point;
  point.set_evaluations(static_cast<uint64_t>(record.evaluations));
  SetPoint(record.configuration, point.mutable_best());
  point.set_value(record.value);
  return point;
}

v1::StoredTuningReport ReportMessage(const TuningReportRecord& record) {
  v1::StoredTuningReport stored;
  *stored.mutable_time() = TimeMessage(record.time);
  stored.set_generation(static_cast<uint64_t>(record.generation));
  stored.set_process(record.process);
  v1::TuningReport* report = stored.mutable_report();
  report->set_proposal(static_cast<uint64_t>(record.proposal));
  SetPoint(record.runs.configuration, report->mutable_configuration());
  report->set_count(static_cast<uint64_t>(record.runs.count));
  report->set_mean(record.runs.mean);
  report->set_squared_deviations(record.runs.squared_deviations);
  report->set_minimum(record.runs.minimum);
  report->set_failures(static_cast<uint64_t>(record.runs.failures));
  return stored;
}

v1::Declared DeclaredMessage(uint32_t section, const absl::Status& status) {
  v1::Declared declared;
  declared.set_section(section);
  declared.mutable_status()->set_code(static_cast<int>(status.code()));
  declared.mutable_status()->set_message(std::string(status.message()));
  return declared;
}

}  // namespace fusion
