// Finds further candidates of a job by what it has measured so far.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "server/model/cost_model.h"
#include "server/optimize/code_stage.h"
#include "server/optimize/plans.h"
#include "server/optimize/submission.h"

namespace fusion {

// Candidates that wait after a later search.
struct Waiting {
  std::vector<WaitingCandidate> candidates;
  // Predicted time of the best cover that is none of them, or less; infinite: there is none.
  double unseen_seconds = 0;
};
// `again` is a search of the same submission by a model that knows more. Chooses `most` of its covers that
// were not timed and whose kernels build: those that may be the fastest, by what they are predicted to take
// less two standard deviations. Adds those that are no candidates yet to *plans and *code, as found by search
// number `search`.
absl::StatusOr<Waiting> AddCandidates(const Submission& submission, const CostModel& model,
                                      const Plans& again, int most, int search, const v1::BuiltCode& built,
                                      Plans* plans, GeneratedCode* code);

}  // namespace fusion
