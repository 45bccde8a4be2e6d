#include "server/cover/subgradient.h"

#include <algorithm>
#include <cmath>

namespace fusion {

std::vector<double> SubgradientPrices(const SetProblem& problem, std::vector<double> start, int steps) {
  constexpr int kPatience = 12;  // steps without a higher value, until they are shortened
  constexpr double kShorter = 0.7;
  constexpr double kHopedFor = 0.03;  // how far above the first value the best cover may be
  // One after the other, for speed: members of set i are members[first[i]] .. members[first[i + 1] - 1].
  std::vector<int> first = {0}, members;
  std::vector<double> seconds;
  for (const SetProblem::Set& set : problem.sets) {
    members.insert(members.end(), set.members.begin(), set.members.end());
    first.push_back(static_cast<int>(members.size()));
    seconds.push_back(set.seconds);
  }
  std::vector<double> prices = start, best_prices = std::move(start);
  std::vector<int> covered(problem.node_count);
  double best = -INFINITY, length = 1, target = 0;
  int futile = 0;
  for (int step = 0; step < steps; ++step) {
    std::fill(covered.begin(), covered.end(), 0);
    double value = 0;
    for (double price : prices) value += price;
    for (size_t set = 0; set < seconds.size(); ++set) {
      double excess = seconds[set];
      for (int i = first[set]; i < first[set + 1]; ++i) excess -= prices[members[i]];
      if (excess >= 0) continue;
      value += excess;
      for (int i = first[set]; i < first[set + 1]; ++i) ++covered[members[i]];
    }
    if (value > best) {
      best = value;
      best_prices = prices;
      futile = 0;
      target = std::max(target, best * (1 + kHopedFor));
    } else if (++futile == kPatience) {
      futile = 0;
      length *= kShorter;
      prices = best_prices;
      continue;
    }
    double norm = 0;
    for (int times : covered) norm += (1.0 - times) * (1.0 - times);
    if (norm == 0) break;
    const double by = length * (target - value) / norm;
    for (int node = 0; node < problem.node_count; ++node) prices[node] += by * (1 - covered[node]);
  }
  return best_prices;
}

}  // namespace fusion
