#include "server/cover/pair_branching.h"

#include <algorithm>
#include <map>

#include "server/cover/set_problem.h"

namespace fusion {

NodePair LeastDecidedPair(const SetProblem& problem, const std::vector<std::pair<int, double>>& shares) {
  std::map<std::pair<int, int>, double> together;
  std::vector<int> parts(problem.node_count, 0);  // sets of each node that are taken in part
  for (const auto& [set, share] : shares) {
    if (share > kWhole) continue;
    const std::vector<int>& members = problem.sets[set].members;
    for (size_t i = 0; i < members.size(); ++i) {
      ++parts[members[i]];
      for (size_t k = i + 1; k < members.size(); ++k) together[{members[i], members[k]}] += share;
    }
  }
  NodePair best;
  double most = 0;
  for (const auto& [pair, share] : together) {
    const double open = std::min(share, 1 - share) * (parts[pair.first] + parts[pair.second]);
    if (open <= most || share > kWhole) continue;
    most = open;
    best = {pair.first, pair.second};
  }
  return best;
}

void Decide(const SetProblem& problem, NodePair pair, bool together, std::vector<char>* out) {
  for (int set : problem.sets_of[pair.a])
    if (problem.sets[set].nodes.Contains(pair.b) != together) (*out)[set] = 1;
  if (!together) return;
  for (int set : problem.sets_of[pair.b])
    if (!problem.sets[set].nodes.Contains(pair.a)) (*out)[set] = 1;
}

}  // namespace fusion
