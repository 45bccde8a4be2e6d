// Cases of loops are tried on a host at small sizes where nothing is measured.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "server/optimize/loop_candidates.h"
#include "server/optimize/loop_submission.h"
#include "server/optimize/predicted_stage.h"

namespace fusion {

// Returns sizes that are smaller where they are above `limit`, a power of two: with the same remainders of
// it, so that tiles divide them as before, and in the same order.
IntegerValues SmallSizes(const IntegerValues& sizes, int64_t limit);

// Returns the cases at these positions, as they are for their device, printed for a host at the smallest such
// sizes that permit them. Cases that only large sizes permit are left out of *positions.
absl::StatusOr<v1::CandidateSet> MakeLoopTrial(const LoopSubmission& submission,
                                               const std::vector<LoopCase>& cases,
                                               const DeviceDescription& device, const DeviceDescription& host,
                                               std::vector<int>* positions);

}  // namespace fusion
