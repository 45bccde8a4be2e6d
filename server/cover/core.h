// The core is what is left of a problem once reduced costs have left sets out: a window around the sets that
// are decided. Internal to server/cover.
#pragma once

#include <vector>

#include "server/cover/partition.h"
#include "server/cover/set_problem.h"

namespace fusion {

// Returns the positions in partition.sets, ascending, of the sets that may still give way to others. The
// others are in every partition without the sets that are `out` (per set): some node has no other set left.
// Sets that share nodes with these become out as well. No set of `partition` is out.
std::vector<int> UndecidedPositions(const SetProblem& problem, const Partition& partition,
                                    std::vector<char>* out);

}  // namespace fusion
