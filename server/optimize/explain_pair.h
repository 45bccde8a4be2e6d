// Explains why two values are, or are not, computed in one kernel.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "fusion/v1/optimizer.pb.h"
#include "server/model/cost_model.h"
#include "server/optimize/hints.h"
#include "server/optimize/plans.h"
#include "server/optimize/submission.h"

namespace fusion {

// `hints` are those of the plans. InvalidArgument names a value that the graph does not have or does not
// compute, or that is given twice.
absl::StatusOr<v1::PairExplanation> ExplainPair(const Submission& submission, const CostModel& model,
                                                const Plans& plans, const Hints& hints,
                                                const std::string& first, const std::string& second);

}  // namespace fusion
