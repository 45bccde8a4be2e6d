#include "server/cover/conflict_cuts.h"

#include <algorithm>
#include <array>
#include <cstdint>
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

// Finds which of many sets are in conflict with all of a few, which are bits of a word.
class CommonConflicts {
 public:
  CommonConflicts(const SetProblem& problem, const std::vector<int>& near) : problem_(problem), near_(near) {
    for (int set : near) {
      members_.insert(members_.end(), problem.sets[set].members.begin(), problem.sets[set].members.end());
      ends_.push_back(members_.size());
    }
  }

  // Adds the near sets, in their order, that are in conflict with all of `clique` by then.
  void Widen(std::vector<int>* clique) {
    nodes_.assign(problem_.node_count, {});
    all_ = 0;
    others_.clear();
    for (int member : *clique) Add(member);
    size_t begin = 0;
    for (size_t i = 0; i < near_.size(); ++i) {
      Relations of_set;
      for (; begin < ends_[i]; ++begin) {
        const Relations& of_node = nodes_[members_[begin]];
        of_set.below |= of_node.below;
        of_set.above |= of_node.above;
      }
      if ((of_set.below & of_set.above) != all_ || !WithOthers(near_[i]) ||
          std::find(clique->begin(), clique->end(), near_[i]) != clique->end())
        continue;
      clique->push_back(near_[i]);
      Add(near_[i]);
    }
  }

 private:
  // The sets that hold a node or of which some node is above it, and those that hold it or have one below it.
  // A set is in conflict with those that are among both, each for any of its nodes.
  struct Relations {
    uint64_t below = 0, above = 0;
  };

  void Add(int number) {
    const uint64_t bit = all_ + 1;  // the lowest that is free
    if (bit == 0) return others_.push_back(number);
    all_ |= bit;
    for (int member : problem_.sets[number].members) {
      nodes_[member].below |= bit;
      nodes_[member].above |= bit;
      if (problem_.ancestors.empty()) continue;
      for (int node : problem_.descendants[member].Members()) nodes_[node].below |= bit;
      for (int node : problem_.ancestors[member].Members()) nodes_[node].above |= bit;
    }
  }
  bool WithOthers(int number) const {
    return std::all_of(others_.begin(), others_.end(), [&](int other) {
      return Conflict(problem_, problem_.sets[other], problem_.sets[number]);
    });
  }

  const SetProblem& problem_;
  const std::vector<int>& near_;
  std::vector<int> members_;  // of all near sets, one after the other
  std::vector<size_t> ends_;  // of each in members_
  std::vector<Relations> nodes_;
  uint64_t all_ = 0;
  std::vector<int> others_;  // for which there was no bit
};

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
      // Cliques of one node are no news: the row of the node says it.
      if (cliques.insert(clique).second) broken.emplace_back(-sum, std::move(clique));
    }
  }
  std::sort(broken.begin(), broken.end());
  std::vector<int> used(count, 0);
  std::vector<Cut> cuts;
  if (broken.empty()) return cuts;
  CommonConflicts common(problem, near);
  for (const auto& [sum, clique] : broken) {
    if (std::any_of(clique.begin(), clique.end(), [&](int member) { return used[member] == kCutsOfSet; }))
      continue;
    if (std::chrono::steady_clock::now() >= deadline) break;
    Cut cut{.limit = 1};
    for (int member : clique) {
      ++used[member];
      cut.sets.push_back(parts[member].second);
    }
    common.Widen(&cut.sets);
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
