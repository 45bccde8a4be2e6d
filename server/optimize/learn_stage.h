// What jobs teach of predictions, for those that follow.
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

// What earlier jobs taught of predictions for the device, and `candidates` of this job. *note: why nothing,
// where that is a fault.
absl::StatusOr<Residual> LearnedResidual(const DeviceDescription& device, v1::CacheState cache,
                                         const PipelineContext& context,
                                         const std::vector<ResidualObservation>& candidates,
                                         std::string* note);
// The kernels that earlier jobs measured on devices of the class; reads the store as it is asked. Null: none.
absl::StatusOr<std::shared_ptr<const KernelMemory>> RememberedKernels(const DeviceDescription& device,
                                                                      v1::CacheState cache,
                                                                      const PipelineContext& context);
// The model with what the candidates that were timed so far say of it and of their kernels, which is not
// stored yet: a job that is run again after a restart is to find what it found before.
absl::StatusOr<CostModel> TaughtModel(const Submission& submission, const CostModel& model,
                                      v1::CacheState cache, const Plans& plans, const GeneratedCode& code,
                                      const PipelineContext& context);
// Stores what the candidates that were timed say, and what is known of their kernels since.
absl::Status LearnFromCandidates(const Submission& submission, const CostModel& model, v1::CacheState cache,
                                 const Plans& plans, const GeneratedCode& code,
                                 const PipelineContext& context);

}  // namespace fusion
