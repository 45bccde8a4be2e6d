#include "server/cover/conflict_cuts.h"

#include <algorithm>
#include <array>
#include <set>

namespace fusion {
namespace {

bool Conflict(const SetProblem& problem, const SetProblem::Set& a, const SetProblem::Set& b) {
  for (int member : a.members)
    if (b.nodes.Contains(member)) return true;
  return problem.WaitForEachOther(a, b);
}

NodeSet Below(const SetProblem& problem, const SetProblem::Set& set) {
  NodeSet below;
  if (problem.descendants.empty()) return below;
  for (int member : set.members) below.UnionWith(problem.descendants[member]);
  return below;
}

}  // namespace

std::vector<Cut> CliqueCuts(const SetProblem& problem, const std::vector<std::pair<int, double>>& shares,
                            const std::vector<int>& near, Deadline deadline) {
  constexpr double kBroken = 1.02;
  constexpr int kCutsOfSet = 3;               // in one call
  std::vector<std::pair<double, int>> parts;  // largest first
  for (const auto& [set, share] : shares)
    if (problem.sets[set].members.size() > 1)
      parts.emplace_back(share, set);  // a node alone is only in conflict with its own sets
  std::sort(parts.rbegin(), parts.rend());
  const int count = static_cast<int>(parts.size());
  std::vector<std::vector<int>> conflicts(count);  // positions in parts, ascending
  std::vector<NodeSet> adjacent(count, NodeSet(count));
  std::vector<NodeSet> below(count);  // what descends from each
  for (int i = 0; i < count; ++i) below[i] = Below(problem, problem.sets[parts[i].second]);
  for (int i = 0; i < count; ++i)
    for (int k = i + 1; k < count; ++k) {
      const NodeSet &a = problem.sets[parts[i].second].nodes, &b = problem.sets[parts[k].second].nodes;
      if (!a.Intersects(b) && !(below[i].Intersects(b) && below[k].Intersects(a))) continue;
      conflicts[i].push_back(k);
      adjacent[i].Add(k);
      adjacent[k].Add(i);
    }
  // From each pair a clique grows by its largest share.
  std::set<std::vector<int>> cliques;
  std::vector<std::pair<double, std::vector<int>>> broken;
  for (int i = 0; i < count; ++i) {
    if (std::chrono::steady_clock::now() >= deadline) return {};
    for (int k : conflicts[i]) {
      std::vector<int> clique = {i, k};
      double sum = parts[i].first + parts[k].first;
      for (int other = 0; other < count; ++other) {
        if (!std::all_of(clique.begin(), clique.end(),
                         [&](int member) { return adjacent[member].Contains(other); }))
          continue;
        clique.push_back(other);
        sum += parts[other].first;
      }
      if (sum <= kBroken) continue;
      std::sort(clique.begin(), clique.end());
      // Those of one node are no news: its row says it.
      if (cliques.insert(clique).second) broken.emplace_back(-sum, std::move(clique));
    }
  }
  std::sort(broken.begin(), broken.end());
  std::vector<int> used(count, 0);
  std::vector<Cut> cuts;
  for (const auto& [sum, clique] : broken) {
    if (std::any_of(clique.begin(), clique.end(), [&](int member) { return used[member] == kCutsOfSet; }))
      continue;
    if (std::chrono::steady_clock::now() >= deadline) break;
    Cut cut{.limit = 1};
    for (int member : clique) {
      ++used[member];
      cut.sets.push_back(parts[member].second);
    }
    for (int set : near) {
      const SetProblem::Set& candidate = problem.sets[set];
      if (std::all_of(cut.sets.begin(), cut.sets.end(), [&](int member) {
            return member != set && Conflict(problem, problem.sets[member], candidate);
          }))
        cut.sets.push_back(set);
    }
    std::sort(cut.sets.begin(), cut.sets.end());
    cuts.push_back(std::move(cut));
  }
  return cuts;
}

std::vector<Cut> WaitingPairCuts(const SetProblem& problem,
                                 const std::vector<std::pair<int, double>>& shares) {
  constexpr double kBroken = 1.02;
  constexpr size_t kMost = 200;  // in one call
  std::vector<std::vector<std::pair<int, double>>> parts(problem.node_count);
  std::vector<std::vector<int>> predecessors(problem.node_count);
  for (const auto& [set, share] : shares)
    for (int node : problem.sets[set].members) parts[node].emplace_back(set, share);
  for (int node = 0; node < problem.node_count; ++node)
    for (int next : problem.successors[node]) predecessors[next].push_back(node);
  auto in_group = [&](int set, int exit, int entry, int other_exit, int other_entry) {
    const NodeSet& nodes = problem.sets[set].nodes;
    return nodes.Contains(exit) && nodes.Contains(entry) && !nodes.Contains(other_exit) &&
           !nodes.Contains(other_entry);
  };
  std::set<std::array<int, 4>> seen;
  std::vector<std::pair<double, std::array<int, 4>>> broken;
  for (int u1 = 0; u1 < problem.node_count; ++u1)
    for (int v2 : problem.successors[u1])
      for (const auto& [set, share] : parts[u1]) {
        if (problem.sets[set].nodes.Contains(v2)) continue;
        for (int v1 : problem.sets[set].members)
          for (int u2 : predecessors[v1]) {
            if (problem.sets[set].nodes.Contains(u2)) continue;
            const std::array<int, 4> cycle = {u1, v1, u2, v2};
            // Each cycle has two beginnings.
            if (!seen.insert(std::min(cycle, std::array<int, 4>{u2, v2, u1, v1})).second) continue;
            double sum = 0;
            for (const auto& [other, part] : parts[u1])
              if (in_group(other, u1, v1, u2, v2)) sum += part;
            for (const auto& [other, part] : parts[u2])
              if (in_group(other, u2, v2, u1, v1)) sum += part;
            if (sum > kBroken) broken.emplace_back(-sum, cycle);
          }
      }
  std::sort(broken.begin(), broken.end());
  if (broken.size() > kMost) broken.resize(kMost);
  std::vector<Cut> cuts;
  for (const auto& [sum, cycle] : broken) {
    const auto [u1, v1, u2, v2] = cycle;
    Cut cut{.limit = 1};
    for (int set : problem.sets_of[u1])
      if (in_group(set, u1, v1, u2, v2)) cut.sets.push_back(set);
    for (int set : problem.sets_of[u2])
      if (in_group(set, u2, v2, u1, v1)) cut.sets.push_back(set);
    std::sort(cut.sets.begin(), cut.sets.end());
    cuts.push_back(std::move(cut));
  }
  return cuts;
}

}  // namespace fusion
