// Branching on two nodes: in one set or not (D. M. Ryan, B. A. Foster, 1981). It only leaves sets out.
// Internal to server/cover.
#pragma once

#include <utility>
#include <vector>

#include "server/cover/set_problem.h"

namespace fusion {

struct NodePair {
  int a = 0, b = 0;
};

// Returns the pair of nodes of which the shares (sets that are taken, each with how much of it) decide least
// whether one set holds both, among nodes that are shared by many sets first. There is one (a and b differ)
// when some share is neither all nor nothing and they cover each node once: otherwise all sets taken in part
// would hold the same nodes.
NodePair LeastDecidedPair(const SetProblem& problem, const std::vector<std::pair<int, double>>& shares);

// Leaves out the sets that put the two nodes apart, or those that hold both.
void Decide(const SetProblem& problem, NodePair pair, bool together, std::vector<char>* out);

}  // namespace fusion
