// Partitions near one that is known, for lists of covers of graphs that are too large to rank all. Internal
// to server/cover.
#pragma once

#include <chrono>
#include <vector>

#include "server/cover/partition.h"
#include "server/cover/set_problem.h"
#include "server/linear/deadline.h"

namespace fusion {

// Returns up to `count` partitions that differ from `best`, each once, by seconds: the next best of each
// window of a few nodes, which is looked at for `window_time` at most, and combinations of these in different
// places. Returns fewer when there are none or there is no time. `best` is schedulable, and so are they.
std::vector<Partition> NearPartitions(const SetProblem& problem, const Partition& best, int count,
                                      Deadline deadline,
                                      std::chrono::milliseconds window_time = std::chrono::milliseconds(50));

}  // namespace fusion
