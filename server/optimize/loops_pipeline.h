// The job of loops in C: the same stages, by name, as that of a graph.
#pragma once

#include "absl/status/statusor.h"
#include "fusion/v1/optimizer.pb.h"
#include "server/optimize/pipeline_context.h"

namespace fusion {

// Runs a job whose source is loops to its end, as OptimizePipeline does, which calls it.
absl::StatusOr<v1::JobResult> LoopsPipeline(const v1::SubmitRequest& request, const PipelineContext& context);

// Returns the best cases of loops as predicted, with the first kernel's occupancy among its estimates; needs
// no worker.
absl::StatusOr<v1::ExplainResponse> ExplainLoops(const v1::ExplainRequest& request,
                                                 const PipelineContext& context);

}  // namespace fusion
