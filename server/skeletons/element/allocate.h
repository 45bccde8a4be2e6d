// Offsets of the on-chip variables of a linearized fusion in one shared array (Fousek 2010, section 4.3.3):
// variables that are active at a common position must not overlap.
#pragma once

#include <cstdint>
#include <vector>

#include "server/skeletons/shared/linearize.h"

namespace fusion {

struct Allocation {
  std::vector<int64_t> offsets;  // for each variable, in the unit of the sizes
  int64_t size = 0;              // max over variables of offset + size
  bool proved_optimal = false;   // no allocation is smaller
};

// M_lb: the largest sum of sizes active at one position. No allocation is smaller; some must be larger.
int64_t AllocationLowerBound(const std::vector<ActiveInterval>& variables);

// Fousek 2010, Listing 4.2 ("hungry"): in order of first use, each variable at the smallest offset that is
// free of the earlier ones it collides with. proved_optimal when the size meets the lower bound.
Allocation AllocateGreedy(const std::vector<ActiveInterval>& variables);

struct AllocateOptions {
  int64_t max_steps = 200'000;  // variables placed, over all branches
};

// The smallest allocation, by branch and bound from the greedy one as in Fousek 2010, Listing 4.3. Never
// larger than the greedy one; at the step limit the best so far, unproved. The listing raises offsets one by
// one, in order of first use, and on a failure looks at the collisions of the last variable alone, which
// skips allocations. Here variables are placed from the bottom up: in some optimal allocation each one rests
// on 0 or on another one, so its offset follows from those below it; and space that is passed over is lost
// for all that comes later, which gives a bound at every step.
Allocation AllocateExact(const std::vector<ActiveInterval>& variables, const AllocateOptions& options = {});

// Both require first <= last and size >= 0. Thread safe, deterministic.

}  // namespace fusion
