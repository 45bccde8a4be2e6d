// The whole job, stage by stage: parse -> graph -> routines -> search -> model -> cover -> codegen ->
// dispatch (workers build and measure, round by round) -> learn -> rank. This is the one place that calls the
// stages, each in order; no stage calls the next.
#pragma once

#include <chrono>
#include <string>

#include "absl/status/statusor.h"
#include "fusion/v1/optimizer.pb.h"
#include "server/dispatch/dispatcher.h"
#include "server/optimize/pipeline_context.h"

namespace fusion {

// Returns what a job of the request would have to wait for now, and for how long at most; "": nothing.
std::string MissingDevice(const v1::SubmitRequest& request, const Dispatcher& dispatcher);
// Returns "WHAT; the job fails in 30 s unless one comes".
std::string WaitsForText(const std::string& what, std::chrono::milliseconds left);

// Runs a job to its end. Everything durable goes through the store (builds, timings, measurements,
// artifacts), so that a job run again after a restart takes what is finished from there. Blocks; call from a
// thread of the job pool. Errors: InvalidArgument (graph, sizes), NotFound / Unavailable (no device),
// Cancelled, DeadlineExceeded, FailedPrecondition (no cover could be measured). A benchmark ends after the
// routines: its result has these alone.
absl::StatusOr<v1::JobResult> OptimizePipeline(const v1::SubmitRequest& request,
                                               const PipelineContext& context);

// Runs the search alone. It needs no worker: without a matching device the last one that a worker had is
// used, or else a described default, and named in the notes.
absl::StatusOr<v1::ExplainResponse> ExplainPipeline(const v1::ExplainRequest& request,
                                                    const PipelineContext& context);

}  // namespace fusion
