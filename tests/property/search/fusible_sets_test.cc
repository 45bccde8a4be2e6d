// Enumeration agrees with testing every subset, on all DAGs of up to 5 nodes and on random ones with shared
// values.
#include "server/search/fusible_sets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace fusion {
namespace {

using Mask = uint32_t;

Mask Edges(const std::vector<std::vector<int>>& successors, Mask set) {
  Mask next = 0;
  for (size_t node = 0; node < successors.size(); ++node)
    if (set >> node & 1)
      for (int to : successors[node]) next |= Mask{1} << to;
  return next;
}

// By walking all paths that leave the set.
bool IsConvex(const std::vector<std::vector<int>>& successors, Mask set) {
  Mask outside = Edges(successors, set) & ~set, last = 0;
  while (outside != last) {
    last = outside;
    outside |= Edges(successors, outside) & ~set;
  }
  return (Edges(successors, outside) & set) == 0;
}

bool IsConnected(const FusibleSetProblem& problem, Mask set) {
  Mask reached = set & -set, last = 0;
  while (reached != last) {
    last = reached;
    reached |= Edges(problem.successors, reached) & set;
    for (size_t node = 0; node < problem.successors.size(); ++node)
      if ((set >> node & 1) && (Edges(problem.successors, Mask{1} << node) & reached))
        reached |= Mask{1} << node;
    for (const std::vector<int>& group : problem.sharing_groups) {
      Mask sharing = 0;
      for (int node : group) sharing |= Mask{1} << node;
      if (sharing & reached) reached |= sharing & set;
    }
  }
  return reached == set;
}

// Members of all fusible sets, in the promised order.
std::vector<std::vector<int>> BySubsets(const FusibleSetProblem& problem, int max_nodes) {
  std::vector<std::vector<int>> sets;
  const int count = static_cast<int>(problem.successors.size());
  for (Mask mask = 1; mask < Mask{1} << count; ++mask) {
    if (!IsConvex(problem.successors, mask) || !IsConnected(problem, mask)) continue;
    std::vector<int> members;
    for (int node = 0; node < count; ++node)
      if (mask >> node & 1) members.push_back(node);
    if (static_cast<int>(members.size()) <= max_nodes) sets.push_back(std::move(members));
  }
  std::sort(sets.begin(), sets.end(), [](const auto& a, const auto& b) {
    return std::make_pair(a.size(), a) < std::make_pair(b.size(), b);
  });
  return sets;
}

std::vector<std::vector<int>> Members(const FusibleSets& found) {
  std::vector<std::vector<int>> sets;
  for (const NodeSet& set : found.sets) sets.push_back(set.Members());
  return sets;
}

FusibleSetProblem ProblemOf(int count, uint64_t edges) {
  FusibleSetProblem problem;
  problem.successors.resize(count);
  for (int to = 1; to < count; ++to)
    for (int from = 0; from < to; ++from, edges >>= 1)
      if (edges & 1) problem.successors[from].push_back(to);
  return problem;
}

TEST(FusibleSets, AgreeWithAllSubsetsOfAllSmallDags) {
  for (int count = 1; count <= 5; ++count) {
    for (uint64_t edges = 0; edges < uint64_t{1} << (count * (count - 1) / 2); ++edges) {
      FusibleSetProblem problem = ProblemOf(count, edges);
      // The nodes without producer, and those without consumer, read the same value: once none, once either,
      // once both.
      std::vector<int> sources, sinks;
      for (int node = 0; node < count; ++node) {
        bool is_source = true;
        for (int from = 0; from < node; ++from)
          for (int to : problem.successors[from]) is_source &= to != node;
        if (is_source) sources.push_back(node);
        if (problem.successors[node].empty()) sinks.push_back(node);
      }
      for (int sharing = 0; sharing < 4; ++sharing) {
        problem.sharing_groups.clear();
        if (sharing & 1) problem.sharing_groups.push_back(sources);
        if (sharing & 2) problem.sharing_groups.push_back(sinks);
        const FusibleSets found = EnumerateFusibleSets(problem, {});
        EXPECT_EQ(found.limit, EnumerationLimit::kNone);
        ASSERT_EQ(Members(found), BySubsets(problem, count))
            << "nodes " << count << " edges " << edges << " sharing " << sharing;
      }
    }
  }
}

FusibleSetProblem RandomProblem(int count, std::mt19937& random) {
  uint64_t edges = random() | uint64_t{random()} << 32;
  if (random() % 2) edges &= random() | uint64_t{random()} << 32;
  FusibleSetProblem problem = ProblemOf(count, edges);
  for (int group = random() % 4; group > 0; --group) {
    std::vector<int> nodes;
    for (int node = 0; node < count; ++node)
      if (random() % 4 == 0) nodes.push_back(node);
    problem.sharing_groups.push_back(nodes);
  }
  return problem;
}

TEST(FusibleSets, AgreeWithAllSubsetsOfRandomDags) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    const FusibleSetProblem problem = RandomProblem(6 + round % 6, random);
    FusibleSetOptions options;
    options.max_nodes = 2 + round % 9;
    const FusibleSets found = EnumerateFusibleSets(problem, options);
    ASSERT_EQ(Members(found), BySubsets(problem, options.max_nodes)) << "round " << round;
    const bool cut = BySubsets(problem, 32).size() > found.sets.size();
    EXPECT_EQ(found.limit, cut ? EnumerationLimit::kMaxNodes : EnumerationLimit::kNone) << "round " << round;
  }
}

TEST(FusibleSets, AgreeWithAFilterThatSupersetsInherit) {
  std::mt19937 random(4);
  for (int round = 0; round < 100; ++round) {
    const FusibleSetProblem problem = RandomProblem(9, random);
    // Wanted: sets that hold no two of three given nodes.
    const NodeSet rivals = [&] {
      NodeSet nodes;
      for (int i = 0; i < 3; ++i) nodes.Add(static_cast<int>(random() % 9));
      return nodes;
    }();
    auto wanted = [&](const std::vector<int>& members) {
      return std::count_if(members.begin(), members.end(), [&](int node) { return rivals.Contains(node); }) <
             2;
    };
    FusibleSetOptions options;
    options.may_extend = [&](const NodeSet& set) { return wanted(set.Members()); };
    std::vector<std::vector<int>> expected = BySubsets(problem, 12);
    std::erase_if(expected, [&](const auto& members) { return !wanted(members); });
    ASSERT_EQ(Members(EnumerateFusibleSets(problem, options)), expected) << "round " << round;
  }
}

}  // namespace
}  // namespace fusion
