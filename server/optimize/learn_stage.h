// Predictions of later jobs learn from what earlier ones measured.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fusion/v1/optimizer.pb.h"
#include "server/model/cost_model.h"
#include "server/optimize/code_stage.h"
#include "server/optimize/pipeline_context.h"
#include "server/optimize/plans.h"
#include "server/optimize/submission.h"

namespace fusion {

// Returns what earlier jobs and the `candidates` of this one taught of predictions for the device. *note says
// why nothing was learned, where that is a fault.
absl::StatusOr<Residual> LearnedResidual(const DeviceDescription& device, v1::CacheState cache,
                                         const PipelineContext& context,
                                         const std::vector<ResidualObservation>& candidates,
                                         std::string* note);
// Returns the kernels that earlier jobs measured on devices of the class; the memory reads the store when it
// is asked. Null: there are none.
absl::StatusOr<std::shared_ptr<const KernelMemory>> RememberedKernels(const DeviceDescription& device,
                                                                      v1::CacheState cache,
                                                                      const PipelineContext& context);
// Returns the model with what the candidates that were timed so far say of it and of their kernels. That is
// not stored yet: a job that is run again after a restart is to find what it found before.
absl::StatusOr<CostModel> TaughtModel(const Submission& submission, const CostModel& model,
                                      v1::CacheState cache, const Plans& plans, const GeneratedCode& code,
                                      const PipelineContext& context);
// Stores what the candidates that were timed say, and what is known of their kernels since.
absl::Status LearnFromCandidates(const Submission& submission, const CostModel& model, v1::CacheState cache,
                                 const Plans& plans, const GeneratedCode& code,
                                 const PipelineContext& context);

}  // namespace fusion
