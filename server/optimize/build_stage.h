// Workers or the build cache make the builds of the code, each once.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fusion/v1/candidates.pb.h"
#include "server/dispatch/dispatcher.h"
#include "server/optimize/pipeline_context.h"

namespace fusion {

// Returns whether all builds that the program needs are there.
bool IsBuilt(const v1::Program& program, const v1::BuiltCode& built);
// Returns the program with its binaries in the place of the keys of its builds, which must be there: as it is
// measured on the device, and is taken away to be run on one like it.
v1::Program BuiltProgram(v1::Program program, const v1::BuiltCode& built);
// Counts the build in the figures of the build cache; metrics may be null.
void CountBuild(const BuildOutcome& outcome, ServerMetrics* metrics);

// Builds the candidates at these positions; before the first of them the reference and the unfused programs.
// Failed builds mark their candidates COMPILE_ERROR and take back unfused programs. FailedPrecondition, with
// the compiler's log, when the reference or every unfused program does not build.
absl::Status BuildCandidates(const std::vector<int>& positions, v1::CandidateSet* set,
                             const PipelineContext& context, v1::BuiltCode* built);

// Builds binaries of the job again that the store has lost because they were damaged. Returns whether there
// were any and all are there again. If a new binary differs from the lost one, the programs of this job
// cannot run; the next job finds the new one.
absl::StatusOr<bool> RebuildWhatIsLost(const v1::CandidateSet& set, const v1::BuiltCode& built,
                                       const PipelineContext& context);

}  // namespace fusion
