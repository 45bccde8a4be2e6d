#include "server/cover/dual_ascent.h"

#include <algorithm>
#include <cmath>

namespace fusion {

std::vector<double> FeasiblePrices(const SetProblem& problem, std::vector<double> prices) {
  std::vector<double> left(problem.sets.size());  // what a set costs more than its nodes
  for (size_t set = 0; set < problem.sets.size(); ++set) {
    left[set] = problem.sets[set].seconds;
    for (int node : problem.sets[set].members) left[set] -= prices[node];
  }
  auto change = [&](int node, double by) {
    prices[node] += by;
    for (int set : problem.sets_of[node]) left[set] -= by;
  };
  for (size_t set = 0; set < problem.sets.size(); ++set) {
    if (left[set] >= 0) continue;
    const std::vector<int>& members = problem.sets[set].members;
    const double by = left[set] / static_cast<double>(members.size());
    for (int node : members) change(node, by);
  }
  // In both directions: what the first leaves is then divided more evenly.
  constexpr int kRounds = 4;
  for (int round = 0; round < kRounds; ++round)
    for (int i = 0; i < problem.node_count; ++i) {
      const int node = round % 2 ? problem.node_count - 1 - i : i;
      double least = INFINITY;
      for (int set : problem.sets_of[node]) least = std::min(least, left[set]);
      change(node, least);
    }
  return prices;
}

std::vector<double> SharePrices(const SetProblem& problem) {
  std::vector<double> prices(problem.node_count, INFINITY);
  for (const SetProblem::Set& set : problem.sets)
    for (int node : set.members)
      prices[node] = std::min(prices[node], set.seconds / static_cast<double>(set.members.size()));
  return FeasiblePrices(problem, std::move(prices));
}

}  // namespace fusion
