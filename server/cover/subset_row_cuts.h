// Cuts against sets that are taken in part because few nodes are shared out among them (subset-row
// inequalities: M. Jepsen, B. Petersen, S. Spoorendonk, D. Pisinger, Operations Research 56 (2008)). Each
// holds for every cover. Internal to server/cover.
//
// At most one set of a cover holds two or more of three nodes. Cuts of more nodes are among the sums of
// zero_half_cuts.h.
#pragma once

#include <utility>
#include <vector>

#include "server/cover/schedule.h"
#include "server/cover/set_problem.h"

namespace fusion {

// Returns the cuts that the shares (sets that are taken, each with how much of it, ascending) break, but for
// many of one node.
std::vector<Cut> SubsetRowCuts(const SetProblem& problem, const std::vector<std::pair<int, double>>& shares);

}  // namespace fusion
