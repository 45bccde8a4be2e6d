// A first schedulable partition of a large problem. Internal to server/cover.
#pragma once

#include <optional>

#include "server/cover/deadline.h"
#include "server/cover/partition.h"
#include "server/cover/set_problem.h"

namespace fusion {

// Single nodes, of which sets take the place in order of what they save, as long as no sets come to wait for
// each other; what does not come to its turn by the deadline stays single. Nothing when some node has no set
// of its own.
std::optional<Partition> GreedyPartition(const SetProblem& problem, Deadline deadline);

}  // namespace fusion
