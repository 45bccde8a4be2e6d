#include "server/cover/pair_branching.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace fusion {

std::vector<NodePair> UndecidedPairs(const SetProblem& problem, const std::vector<std::pair<int, double>>& shares) {
  constexpr double kWhole = 1 - 1e-6;  // as much of a set is all of it
  std::map<std::pair<int, int>, double> together;
  for (const auto& [set, share] : shares) {
    if (share > kWhole) continue;
    const std::vector<int>& members = problem.sets[set].members;
    for (size_t i = 0; i < members.size(); ++i)
      for (size_t k = i + 1; k < members.size(); ++k) together[{members[i], members[k]}] += share;
  }
  std::vector<std::pair<double, NodePair>> undecided;
  for (const auto& [pair, share] : together)
    if (share < kWhole) undecided.push_back({std::abs(share - 0.5), {pair.first, pair.second}});
  std::stable_sort(undecided.begin(), undecided.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<NodePair> pairs;
  for (const auto& [decided, pair] : undecided) pairs.push_back(pair);
  return pairs;
}

void Decide(const SetProblem& problem, NodePair pair, bool together, std::vector<char>* out) {
  for (int set : problem.sets_of[pair.a])
    if (problem.sets[set].nodes.Contains(pair.b) != together) (*out)[set] = 1;
  if (!together) return;
  for (int set : problem.sets_of[pair.b])
    if (!problem.sets[set].nodes.Contains(pair.a)) (*out)[set] = 1;
}

}  // namespace fusion
