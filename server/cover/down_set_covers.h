// The second engine: dynamic programming over down-sets.
#pragma once

#include <optional>
#include <vector>

#include "server/cover/cover_solver.h"
#include "server/cover/partition.h"
#include "server/cover/set_problem.h"
#include "server/linear/deadline.h"

namespace fusion {

// Returns the fastest partition made of the `allowed` sets. kOptimal or kNone; kUnknown when the deadline
// passes; nothing when schedules reach more than `most` down-sets. Every prefix of a schedule computes a
// down-set, and a set can follow when the down-set holds the predecessors of its nodes and none of its nodes;
// so the best partition is a shortest path through the down-sets.
std::optional<PartitionResult> BestDownSetPartition(const SetProblem& problem,
                                                    const std::vector<int>& allowed, Deadline deadline,
                                                    size_t most = kMaxDownSets);

}  // namespace fusion
