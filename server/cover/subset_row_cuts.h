// Cuts against sets that are taken in part because few nodes are shared out among them (subset-row
// inequalities: M. Jepsen, B. Petersen, S. Spoorendonk, D. Pisinger, Operations Research 56 (2008)). Each
// holds for every cover. Internal to server/cover.
//
// Of n nodes at most n/2 sets of a cover hold two or more. `shares`: the sets that are taken, each with how
// much of it, ascending.
#pragma once

#include <utility>
#include <vector>

#include "server/cover/schedule.h"
#include "server/cover/set_problem.h"

namespace fusion {

// Those of three nodes that the shares break, but for many of one node.
std::vector<Cut> SubsetRowCuts(const SetProblem& problem, const std::vector<std::pair<int, double>>& shares);

// Such of five nodes: found by a greedy search from each node, so not all. Sets that hold four or five of the
// nodes, of which there cannot be two, count once.
std::vector<Cut> FiveNodeCuts(const SetProblem& problem, const std::vector<std::pair<int, double>>& shares);

}  // namespace fusion
