#include "server/tuner/report_check.h"

#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

constexpr uint64_t kMostRunsOfReport = uint64_t{1} << 50;  // of one report: sums of many stay exact
constexpr double kRounding = 1e-9;

bool IsPositive(double value) { return std::isfinite(value) && value > 0; }

}  // namespace

absl::Status CheckReport(const v1::TuningReport& report, const ParameterSpace& space) {
  if (report.proposal() > static_cast<uint64_t>(INT64_MAX))
    return absl::InvalidArgumentError("proposal: no such number");
  if (report.count() > kMostRunsOfReport || report.failures() > kMostRunsOfReport)
    return absl::InvalidArgumentError("count, failures: more runs than can be");
  if (report.count() == 0 && report.failures() == 0)
    return absl::InvalidArgumentError("count, failures: no run at all");
  if (report.count() > 0) {
    if (!IsPositive(report.mean()))
      return absl::InvalidArgumentError(
          absl::StrCat("mean: must be positive and finite; it is ", report.mean()));
    if (!IsPositive(report.minimum()) || report.minimum() > report.mean() * (1 + kRounding))
      return absl::InvalidArgumentError(absl::StrCat("minimum: must be positive and not above the mean ",
                                                     report.mean(), "; it is ", report.minimum()));
    if (!std::isfinite(report.squared_deviations()) || report.squared_deviations() < 0)
      return absl::InvalidArgumentError(absl::StrCat(
          "squared_deviations: must be finite and not negative; it is ", report.squared_deviations()));
  }
  if (!std::isfinite(report.excess()))
    return absl::InvalidArgumentError(absl::StrCat("excess: must be finite; it is ", report.excess()));
  return space.Check(report.configuration().values());
}

}  // namespace fusion
