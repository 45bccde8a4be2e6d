#include "server/tuner/tuning_messages.h"

#include <cmath>

#include "server/tuner/declared_section.h"

namespace fusion {
namespace {

void SetPoint(const std::string& bytes, v1::Configuration* configuration) {
  for (const double value : DecodePoint(bytes, bytes.size() / sizeof(double)))
    configuration->add_values(value);
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
  tuning.set_default_value(record.default_value);
  tuning.set_exploration_excess(record.exploration_excess);
  tuning.set_total_value(record.total_value);
  return tuning;
}

v1::ConfigurationStatistics StatisticsMessage(const TuningConfigurationRecord& record) {
  v1::ConfigurationStatistics statistics;
  SetPoint(record.configuration, statistics.mutable_configuration());
  statistics.set_count(static_cast<uint64_t>(record.count));
  statistics.set_mean(record.mean);
  if (record.count > 1)
    statistics.set_standard_deviation(
        std::sqrt(record.squared_deviations / static_cast<double>(record.count - 1)));
  statistics.set_minimum(record.minimum);
  statistics.set_failures(static_cast<uint64_t>(record.failures));
  return statistics;
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
