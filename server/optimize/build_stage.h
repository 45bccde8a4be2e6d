// Builds of the code, each once, by workers or from the build cache.
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

// What was built so far.
struct BuiltCode {
  std::map<const CodeUnit*, std::string> binaries;  // digests
  std::map<const CodeUnit*, v1::BuildResult> failed;
  int builds = 0;
  int reused = 0;
};
// What runs on the device: as it is measured there, and as it is taken away to be run on one like it.
v1::Program ProgramOfUnits(const Submission& submission, const DeviceDescription& device,
                           const BuiltCode& built, const std::vector<const CodeUnit*>& units,
                           const std::string& name, bool force_f64 = false);
// Into the figures of the build cache; metrics may be null.
void CountBuild(const BuildOutcome& outcome, ServerMetrics* metrics);

// Each build of the units once: units that only their launches set apart have the same one.
struct DistinctBuilds {
  std::vector<v1::BuildTask> tasks;
  std::vector<size_t> of_unit;  // position in `tasks`, of each unit
};
DistinctBuilds DistinctBuildsOf(const std::vector<const CodeUnit*>& units);

// Builds the candidates at these positions; before the first of them the reference and the unfused covers.
// Failed builds mark their candidates COMPILE_ERROR and take back unfused covers. FailedPrecondition, with
// the compiler's log, when the reference or every unfused cover does not build.
absl::Status BuildCandidates(const std::vector<int>& positions, GeneratedCode* code,
                             const PipelineContext& context, BuiltCode* built);

// Whether binaries of the job were not in the store any more, because they were damaged, and all are there
// again: builds what is lost. Where one is not what it was, this job's programs cannot run; the next one
// finds the new one.
absl::StatusOr<bool> RebuildWhatIsLost(const BuiltCode& built, const PipelineContext& context);

}  // namespace fusion
