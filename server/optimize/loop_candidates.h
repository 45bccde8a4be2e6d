// Cases of loops with values of their parameters, as candidates of a job.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fusion/v1/candidates.pb.h"
#include "server/loop_kernels/lowering.h"
#include "server/optimize/case_finder.h"
#include "server/optimize/loop_submission.h"
#include "server/optimize/plans.h"

namespace fusion {

// "s=4 B=256, shared a": for people.
std::string CaseText(const LoopCase& one, const LoopCode& code);

struct LoopCandidates {
  v1::CandidateSet set;
  std::vector<LoopCase> cases;  // of each candidate
  std::vector<LoopCode> codes;  // likewise
  IntegerValues least;          // the smallest values, which leave nothing out at any sizes
};

// Returns the code of the cases, of the plain kernels that speed-ups are relative to (one iteration a thread,
// nothing in shared memory), and of the reference: the loops in f64, of which what is proved to be parallel
// runs in parallel.
absl::StatusOr<LoopCandidates> GenerateLoopCode(const LoopSubmission& submission, std::vector<LoopCase> cases,
                                                const DeviceDescription& device);

std::vector<WaitingCandidate> AllCandidates(const LoopCandidates& candidates);

}  // namespace fusion
