// Shows a job as a timeline that Perfetto (https://ui.perfetto.dev) and chrome://tracing read.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "db/store/job_store.h"

namespace fusion {

// Returns {"traceEvents": [...], ...} in the Trace Event Format: complete events ("X"), instants ("i") and
// names ("M"), ascending in time, in microseconds since the first thing that happened. Processes:
//   server      the job, and the stages of its pipeline
//   queue       each time a task waited for a worker, on as many tracks as it takes for none to overlap
//   worker NAME each attempt of a task, builds and the timings on each device on tracks of their own; an
//   instant where a lease was lost
// A span that has not ended reaches to `now` and says so. "otherData" has the job, its trace id and the time
// of day at which it begins.
std::string TraceJson(const JobRecord& job, const JobTraceRecord& trace, Timestamp now);

// Returns the TraceJson of a job in the store. NotFound: no such job.
absl::StatusOr<std::string> TraceOfJob(JobStore& store, const std::string& job, Timestamp now);

}  // namespace fusion
