// What jobs teach of predictions, for those that follow.
#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "server/service/job_stages.h"

namespace fusion {
namespace {

ModelStatisticsKey KeyOf(const DeviceDescription& device, v1::CacheState cache) {
  return {.device_class = device.name(), .cache = v1::CacheState_Name(cache), .model_version = kCostModelVersion};
}

}  // namespace

absl::StatusOr<Residual> LearnedResidual(const DeviceDescription& device, v1::CacheState cache, const PipelineContext& context,
                                         std::string* note) {
  auto stored = context.store.ModelStatistics(KeyOf(device, cache));
  if (!stored.ok()) return stored.status();
  v1::ResidualStatistics statistics;
  if (!statistics.ParseFromString(*stored)) {
    *note = absl::StrCat("what was learned of predictions for ", device.name(), " cannot be read; it is begun anew");
    return Residual();
  }
  return Residual(statistics);
}

absl::Status LearnFromCandidates(const CostModel& model, v1::CacheState cache, const Plans& plans, const GeneratedCode& code,
                                 const PipelineContext& context) {
  std::vector<ResidualObservation> observations;
  for (size_t i = 0; i < code.candidates.size(); ++i) {
    const v1::Candidate& candidate = code.candidates[i].candidate;
    if (candidate.outcome() != v1::OK) continue;
    // What the kernels took; of very short ones not less than a quarter.
    const double measured = candidate.measured().median();
    ResidualObservation observation{.measured_seconds = std::max(measured - model.StartSeconds(), measured / 4)};
    for (int member : plans.covers.covers[i].columns) {
      const FusionImplementation& implementation = plans.space.implementations[member];
      observation.kernels.push_back(FeaturesOf(implementation));
      observation.predicted_seconds.push_back(implementation.estimate.total_seconds / implementation.estimate.correction);
    }
    observations.push_back(std::move(observation));
  }
  const auto now = std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
  return context.store.UpdateModelStatistics(
      KeyOf(model.device(), cache),
      [&](const std::string& stored) {
        v1::ResidualStatistics statistics;
        if (!statistics.ParseFromString(stored)) statistics.Clear();
        AddJob(observations, &statistics);
        return statistics.SerializeAsString();
      },
      now);
}

}  // namespace fusion
