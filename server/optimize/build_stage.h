// Workers or the build cache make the builds of the code, each once.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fusion/v1/program.pb.h"
#include "fusion/v1/worker.pb.h"
#include "server/dispatch/dispatcher.h"
#include "server/optimize/code_stage.h"
#include "server/optimize/pipeline_context.h"
#include "server/optimize/submission.h"

namespace fusion {

// The builds that a job has so far.
struct BuiltCode {
  std::map<const CodeUnit*, std::string> binaries;  // digests
  std::map<const CodeUnit*, v1::BuildResult> failed;
  int builds = 0;
  int reused = 0;
};
// Returns the program that is measured on the device, and is taken away to be run on one like it.
v1::Program ProgramOfUnits(const Submission& submission, const DeviceDescription& device,
                           const BuiltCode& built, const std::vector<const CodeUnit*>& units,
                           const std::string& name, bool force_f64 = false);
// Counts the build in the figures of the build cache; metrics may be null.
void CountBuild(const BuildOutcome& outcome, ServerMetrics* metrics);

// Lists each build of the units once: units that only their launches set apart share a build.
struct DistinctBuilds {
  std::vector<v1::BuildTask> tasks;
  std::vector<size_t> of_unit;  // for each unit the position in `tasks`
};
DistinctBuilds DistinctBuildsOf(const std::vector<const CodeUnit*>& units);

// Builds the candidates at these positions; before the first of them the reference and the unfused covers.
// Failed builds mark their candidates COMPILE_ERROR and take back unfused covers. FailedPrecondition, with
// the compiler's log, when the reference or every unfused cover does not build.
absl::Status BuildCandidates(const std::vector<int>& positions, GeneratedCode* code,
                             const PipelineContext& context, BuiltCode* built);

// Builds binaries of the job again that the store has lost because they were damaged. Returns whether there
// were any and all are there again. If a new binary differs from the lost one, the programs of this job
// cannot run; the next job finds the new one.
absl::StatusOr<bool> RebuildWhatIsLost(const BuiltCode& built, const PipelineContext& context);

}  // namespace fusion
