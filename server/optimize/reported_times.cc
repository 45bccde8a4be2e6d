#include "server/optimize/reported_times.h"

#include <cmath>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

bool IsSound(const v1::Statistics& statistics) {
  for (const double value :
       {statistics.median(), statistics.low(), statistics.high(), statistics.quick(), statistics.spread()})
    if (!std::isfinite(value) || value < 0) return false;
  return true;
}

bool HasTime(const v1::Statistics& statistics) { return statistics.median() > 0 && statistics.samples() > 0; }

// Returns whether the code that ran is the program's. Only a measurement that is not OK may leave it unsaid.
bool RanItsCode(const v1::Program& program, const v1::ProgramMeasurement& measurement) {
  if (measurement.binaries().empty() && measurement.outcome() != v1::OK) return true;
  std::set<std::string> wanted;
  for (const v1::Launch& launch : program.launches()) wanted.insert(launch.binary());
  return wanted == std::set<std::string>(measurement.binaries().begin(), measurement.binaries().end());
}

// `warm`: warm times rank.
void Check(bool warm, const v1::Program& program, v1::ProgramMeasurement* measurement,
           ServerMetrics* metrics) {
  std::string wrong;
  if (!v1::Outcome_IsValid(measurement->outcome()))
    wrong = absl::StrCat("an outcome ", static_cast<int>(measurement->outcome()), ", which there is not");
  for (const v1::Statistics* statistics :
       {&measurement->cold(), &measurement->warm(), &measurement->paired_speedup(),
        &measurement->paired_warm_speedup()})
    if (!IsSound(*statistics)) wrong = "times that are none";
  if (wrong.empty() && measurement->outcome() == v1::OK &&
      !HasTime(warm ? measurement->warm() : measurement->cold()))
    wrong = "success without a time of it";
  if (wrong.empty() && !RanItsCode(program, *measurement))
    wrong = measurement->binaries().empty()
                ? "a time without the code that ran, as workers of earlier versions do: upgrade it"
                : "that other code ran than that of the program";
  // Workers that give no low quantile cannot tell either; simulated ones do not.
  if (wrong.empty() && measurement->outcome() == v1::OK &&
      (warm ? measurement->warm() : measurement->cold()).quick() == 0)
    measurement->set_steady(true);
  if (wrong.empty()) return;
  if (metrics != nullptr) metrics->refused_measurements->Add();
  v1::ProgramMeasurement refused;
  refused.set_name(measurement->name());
  refused.set_outcome(v1::WORKER_LOST);
  refused.set_message(absl::StrCat("the worker reported ", wrong));
  *measurement = std::move(refused);
}

}  // namespace

v1::TimeResult ReportedTimes(v1::TimeResult result, const v1::TimeTask& task, ServerMetrics* metrics) {
  const int programs = task.programs_size();
  const bool warm = task.method().warm();
  if (result.programs_size() > programs)
    result.mutable_programs()->DeleteSubrange(programs, result.programs_size() - programs);
  if (result.has_unfused()) Check(warm, task.session().unfused(), result.mutable_unfused(), metrics);
  for (int i = 0; i < result.programs_size(); ++i)
    Check(warm, task.programs(i), result.mutable_programs(i), metrics);
  return result;
}

}  // namespace fusion
