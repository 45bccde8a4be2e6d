#include "server/cover/subset_row_cuts.h"

#include <algorithm>
#include <array>
#include <utility>

#include "server/cover/set_problem.h"

namespace fusion {
namespace {

constexpr double kBrokenRow = 0.02;  // what is broken by less is not worth a cut
constexpr int kCutsOfNode = 3;       // in one call

using Three = std::array<int, 3>;

// Returns the most broken cuts, but for many of one node. `broken` holds nodes, each three behind how much of
// the sets with two of them is taken, negative.
std::vector<Cut> CutsOf(const SetProblem& problem, std::vector<std::pair<double, Three>> broken) {
  std::sort(broken.begin(), broken.end());
  std::vector<int> used(problem.node_count, 0), held(problem.sets.size(), 0);
  std::vector<Cut> cuts;
  for (const auto& [sum, nodes] : broken) {
    if (std::any_of(nodes.begin(), nodes.end(), [&](int node) { return used[node] == kCutsOfNode; }))
      continue;
    Cut cut{.limit = 1};
    for (int node : nodes) {
      ++used[node];
      for (int set : problem.sets_of[node])
        if (++held[set] == 2) cut.sets.push_back(set);
    }
    for (int node : nodes)
      for (int set : problem.sets_of[node]) held[set] = 0;
    std::sort(cut.sets.begin(), cut.sets.end());
    cuts.push_back(std::move(cut));
  }
  return cuts;
}

}  // namespace

std::vector<Cut> SubsetRowCuts(const SetProblem& problem, const std::vector<std::pair<int, double>>& shares) {
  // Nodes that share a set which is taken in part.
  std::vector<std::vector<std::pair<int, double>>> parts(problem.node_count);
  std::vector<std::vector<int>> near(problem.node_count);
  for (const auto& [set, share] : shares) {
    if (share > kWhole) continue;
    for (int node : problem.sets[set].members) {
      parts[node].emplace_back(set, share);
      for (int other : problem.sets[set].members)
        if (other > node) near[node].push_back(other);
    }
  }
  for (std::vector<int>& nodes : near) {
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  }
  auto holds_two = [&](int set, const Three& three) {
    const NodeSet& nodes = problem.sets[set].nodes;
    return nodes.Contains(three[0]) + nodes.Contains(three[1]) + nodes.Contains(three[2]) >= 2;
  };
  std::vector<std::pair<double, Three>> broken;
  for (int a = 0; a < problem.node_count; ++a)
    for (size_t i = 0; i < near[a].size(); ++i)
      for (size_t k = i + 1; k < near[a].size(); ++k) {
        const Three three = {a, near[a][i], near[a][k]};
        if (!std::binary_search(near[three[1]].begin(), near[three[1]].end(), three[2])) continue;
        // Sets with two of the nodes: those of the first with one of the others, and those of the others
        // without the first.
        double sum = 0;
        for (const auto& [set, share] : parts[a])
          if (holds_two(set, three)) sum += share;
        for (const auto& [set, share] : parts[three[1]])
          if (!problem.sets[set].nodes.Contains(a) && holds_two(set, three)) sum += share;
        if (sum > 1 + kBrokenRow) broken.emplace_back(-sum, three);
      }
  return CutsOf(problem, std::move(broken));
}

}  // namespace fusion
