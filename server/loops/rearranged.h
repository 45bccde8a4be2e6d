// Serial loops in another order of their iterations, in which some of them are parallel.
#pragma once

#include <optional>

#include "server/loops/check.h"

namespace fusion {

// Returns the program with nests of loops of which nothing would run in parallel in another order, where it
// is proved that each entry of an array goes through the same values, and that loops are parallel then: loops
// are split (split_loops.h), and where that does not help nests go along diagonals (diagonals.h). Nothing
// where there are no such nests. Loops that somebody claims to be parallel stay as they are, and so do those
// around them.
std::optional<CheckedProgram> Rearranged(const CheckedProgram& checked);

}  // namespace fusion
