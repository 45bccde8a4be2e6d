// Prices of nodes whose sum is a bound, without any program. Internal to server/cover.
#pragma once

#include <vector>

#include "server/cover/set_problem.h"

namespace fusion {

// Prices near `prices` (seconds, per node) of which no set holds more than it costs: lowered where a set
// does, then each raised as far as its sets let it (dual ascent: D. Erlenkotter, 1978). Their sum is a bound:
// no cover is faster.
std::vector<double> FeasiblePrices(const SetProblem& problem, std::vector<double> prices);

// Prices for the beginning: of each node its smallest share of a set, raised likewise.
std::vector<double> SharePrices(const SetProblem& problem);

}  // namespace fusion
