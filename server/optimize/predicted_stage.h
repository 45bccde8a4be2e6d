// This stage stands in the place of measuring for a job that measures nothing: the best predicted candidates
// are built, and computed on a host at small sizes, as far as workers can do either.
#pragma once

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fusion/v1/candidates.pb.h"
#include "server/optimize/pipeline_context.h"
#include "server/optimize/plans.h"
#include "server/optimize/submission.h"
#include "server/target/device_description.h"

namespace fusion {

// Checks the first `most` candidates of the set, and gives these an outcome; *result gets remarks on what
// could not be checked. Statuses are those of Dispatcher::Build and Dispatcher::Time, but that there is no
// worker is a remark.
absl::Status CheckPredicted(const Submission& submission, const Plans& plans, const DeviceDescription& device,
                            int most, const PipelineContext& context, v1::CandidateSet* set,
                            v1::BuiltCode* built, v1::JobResult* result);

// Makes the candidates at these positions for a host, at sizes that it chooses, with what they are verified
// against. It may leave some out of *positions. Unavailable: none can be tried.
using TrialMaker = std::function<absl::StatusOr<v1::CandidateSet>(const DeviceDescription& host,
                                                                  std::vector<int>* positions)>;

// Does that for other code than that of graphs.
absl::Status CheckPredicted(const TrialMaker& make_trial, const DeviceDescription& device, int most,
                            const PipelineContext& context, v1::CandidateSet* set, v1::BuiltCode* built,
                            v1::JobResult* result);

// Returns sizes at which kernels are tried: small ones, in the order of those given, equal where these are.
SizeValues TrialSizes(const SizeValues& sizes);

}  // namespace fusion
