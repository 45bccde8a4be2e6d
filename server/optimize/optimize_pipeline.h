// The whole job, stage by stage: parse -> graph -> routines -> search -> model -> cover -> codegen ->
// dispatch (workers build and measure, round by round) -> learn -> rank. This is the one place that calls the
// stages, each in order; no stage calls the next.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "db/store/store.h"
#include "fusion/v1/optimizer.pb.h"
#include "library/catalog/catalog.h"
#include "server/dispatch/cancellation.h"
#include "server/dispatch/dispatcher.h"
#include "server/optimize/search_process.h"

namespace fusion {

class ServerMetrics;

struct PipelineContext {
  Store& store;
  Dispatcher& dispatcher;
  SearchPool& searches;
  std::shared_ptr<const Catalog> catalog;
  std::string job;  // "jobs/<id>"; empty for explain
  CancellationToken cancellation;
  std::function<void(v1::JobEvent)> emit;  // progress; may be empty
  std::string dump_directory;              // each stage writes its value here as text; empty: nothing
  ServerMetrics* metrics = nullptr;        // may be null
  v1::JobLimits limits = {};               // what the request says; 0: the server's own
  // Called with true before the job waits for a device that is not there, with false behind it: meanwhile it
  // leaves its place among the jobs that run to another. May be empty.
  std::function<void(bool)> waits_for_device = {};
  // Called with what the job waits for, for people, and how long it will wait at most; with "" when it waits
  // no longer. May be empty.
  std::function<void(const std::string& what, std::chrono::milliseconds left)> waits_for = {};
};

// What a job of the request would have to wait for now, and for how long at most; "": nothing.
std::string MissingDevice(const v1::SubmitRequest& request, const Dispatcher& dispatcher);
// "WHAT; the job fails in 30 s unless one comes"
std::string WaitsForText(const std::string& what, std::chrono::milliseconds left);

// Runs a job to its end. Everything durable goes through the store (builds, timings, measurements,
// artifacts), so that a job run again after a restart takes what is finished from there. Blocks; call from a
// thread of the job pool. Errors: InvalidArgument (graph, sizes), NotFound / Unavailable (no device),
// Cancelled, DeadlineExceeded, FailedPrecondition (no cover could be measured). A benchmark ends after the
// routines: its result has these alone.
absl::StatusOr<v1::JobResult> OptimizePipeline(const v1::SubmitRequest& request,
                                               const PipelineContext& context);

// The search alone. Needs no worker: without a matching device the last one that a worker had is used, or
// else a described default, and named in the notes.
absl::StatusOr<v1::ExplainResponse> ExplainPipeline(const v1::ExplainRequest& request,
                                                    const PipelineContext& context);

}  // namespace fusion
