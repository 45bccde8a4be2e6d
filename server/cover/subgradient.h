// Prices of nodes near those of the relaxed program, without solving it. Internal to server/cover.
#pragma once

#include <vector>

#include "server/cover/set_problem.h"

namespace fusion {

// Returns prices of nodes, seconds. Each step raises the prices of nodes that the sets of negative excess
// cover too rarely, and lowers those that they cover too often (M. Held, R. M. Karp, 1971). They give no
// bound: some sets hold more than they cost. `start`: prices per node.
std::vector<double> SubgradientPrices(const SetProblem& problem, std::vector<double> start, int steps);

}  // namespace fusion
