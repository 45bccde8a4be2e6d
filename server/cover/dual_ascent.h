// Prices of nodes whose sum is a bound, found without any program. Internal to server/cover.
#pragma once

#include <vector>

#include "server/cover/set_problem.h"

namespace fusion {

// Returns prices near `prices` (seconds, per node) of which no set holds more than it costs: they are lowered
// where a set does, then each is raised as far as its sets let it (dual ascent: D. Erlenkotter, 1978). Their
// sum is a bound: no cover is faster.
std::vector<double> FeasiblePrices(const SetProblem& problem, std::vector<double> prices);

// Returns prices for the beginning: each node's smallest share of a set, raised likewise.
std::vector<double> SharePrices(const SetProblem& problem);

}  // namespace fusion
