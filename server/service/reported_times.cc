#include "server/service/reported_times.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

bool IsSound(const v1::Statistics& statistics) {
  for (const double value : {statistics.median(), statistics.low(), statistics.high()})
    if (!std::isfinite(value) || value < 0) return false;
  return true;
}

void Check(v1::ProgramMeasurement* measurement) {
  std::string wrong;
  if (!v1::Outcome_IsValid(measurement->outcome()))
    wrong = absl::StrCat("an outcome ", static_cast<int>(measurement->outcome()), ", which there is not");
  for (const v1::Statistics* statistics :
       {&measurement->cold(), &measurement->warm(), &measurement->paired_speedup(),
        &measurement->paired_warm_speedup()})
    if (!IsSound(*statistics)) wrong = "times that are none";
  if (wrong.empty()) return;
  v1::ProgramMeasurement refused;
  refused.set_name(measurement->name());
  refused.set_outcome(v1::WORKER_LOST);
  refused.set_message(absl::StrCat("the worker reported ", wrong));
  *measurement = std::move(refused);
}

}  // namespace

v1::TimeResult ReportedTimes(v1::TimeResult result, int programs) {
  if (result.programs_size() > programs)
    result.mutable_programs()->DeleteSubrange(programs, result.programs_size() - programs);
  if (result.has_unfused()) Check(result.mutable_unfused());
  for (v1::ProgramMeasurement& measurement : *result.mutable_programs()) Check(&measurement);
  return result;
}

}  // namespace fusion
