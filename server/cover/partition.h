// Covers by sets, before a column is chosen for each.
#pragma once

#include <vector>

namespace fusion {

// A schedulable exact cover by sets of a SetProblem.
struct Partition {
  std::vector<int> sets;  // in schedule order
  double seconds = 0;     // each set by its cheapest column
};

enum class PartitionOutcome {
  kOptimal,
  kFeasible,  // valid, but a better one may exist
  kNone,      // there is no schedulable cover
  kUnknown,   // none was found; one may exist
};

// The answer to: which partition made of these sets is the fastest?
struct PartitionResult {
  PartitionOutcome outcome = PartitionOutcome::kUnknown;
  Partition partition;  // for kOptimal and kFeasible
};

}  // namespace fusion
