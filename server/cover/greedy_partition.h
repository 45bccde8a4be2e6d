// A first schedulable partition of a large problem. Internal to server/cover.
#pragma once

#include <optional>

#include "server/cover/partition.h"
#include "server/cover/set_problem.h"
#include "server/linear/deadline.h"

namespace fusion {

// Starts from single nodes, whose place sets take in order of what they save, as long as no sets come to wait
// for each other; nodes whose sets do not come to their turn by the deadline stay single. Returns nothing
// when some node has no set of its own.
std::optional<Partition> GreedyPartition(const SetProblem& problem, Deadline deadline);

}  // namespace fusion
