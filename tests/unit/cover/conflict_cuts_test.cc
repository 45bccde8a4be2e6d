#include "server/cover/conflict_cuts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <set>

namespace fusion {
namespace {

// Nodes that read two of the eight before them, and all nodes alone and sets of two to four that are near
// each other in the order; those that are not convex are left out.
SetProblem RandomProblem(int nodes, int sets, std::mt19937& random) {
  CoverProblem problem{.node_count = nodes, .successors = std::vector<std::vector<int>>(nodes)};
  for (int node = 1; node < nodes; ++node)
    for (int k = 0; k < 2; ++k) {
      std::vector<int>& from = problem.successors[node - 1 - static_cast<int>(random() % std::min(node, 8))];
      if (from.empty() || from.back() != node) from.push_back(node);
    }
  std::set<NodeSet> all;
  for (int node = 0; node < nodes; ++node) {
    NodeSet alone;
    alone.Add(node);
    all.insert(alone);
  }
  for (int i = 0; i < sets; ++i) {
    NodeSet set;
    const int first = static_cast<int>(random() % nodes), size = 2 + static_cast<int>(random() % 3);
    while (set.Size() < size) set.Add((first + static_cast<int>(random() % 6)) % nodes);
    all.insert(set);
  }
  for (const NodeSet& set : all) problem.columns.push_back({set, 1.0});
  return MakeSetProblem(problem).value();
}

bool SharesNode(const SetProblem::Set& a, const SetProblem::Set& b) { return a.nodes.Intersects(b.nodes); }
bool InConflict(const SetProblem& problem, int a, int b) {
  return SharesNode(problem.sets[a], problem.sets[b]) ||
         problem.WaitForEachOther(problem.sets[a], problem.sets[b]);
}

// Cuts are cliques, and of the sets near each of its turn stands in all that it is in conflict with.
TEST(CliqueCuts, HoldAllThatIsInConflictInItsTurn) {
  std::mt19937 random(5);
  int cuts = 0, by_waiting = 0;
  size_t largest = 0;
  for (int round = 0; round < 40; ++round) {
    const SetProblem problem = RandomProblem(30, round == 0 ? 3000 : 300, random);
    const int count = static_cast<int>(problem.sets.size());
    std::vector<std::pair<int, double>> shares;
    for (int set = 0; set < count; ++set)
      if (random() % 8 == 0) shares.emplace_back(set, 0.4);
    std::vector<int> near;
    for (int set = 0; set < count; ++set) near.push_back(set);
    std::shuffle(near.begin(), near.end(), random);
    const auto begun = CliqueCuts(problem, shares, {}, Deadline::max());
    const auto widened = CliqueCuts(problem, shares, near, Deadline::max());
    ASSERT_EQ(begun.size(), widened.size());
    for (size_t i = 0; i < begun.size(); ++i) {
      std::vector<int> expected = begun[i].sets;
      for (size_t a = 0; a < expected.size(); ++a)
        for (size_t b = a + 1; b < expected.size(); ++b) {
          EXPECT_TRUE(InConflict(problem, expected[a], expected[b]));
          by_waiting += !SharesNode(problem.sets[expected[a]], problem.sets[expected[b]]);
        }
      for (int set : near)
        if (std::all_of(expected.begin(), expected.end(),
                        [&](int member) { return member != set && InConflict(problem, member, set); }))
          expected.push_back(set);
      std::sort(expected.begin(), expected.end());
      EXPECT_EQ(widened[i].sets, expected);
      largest = std::max(largest, expected.size());
      ++cuts;
    }
  }
  EXPECT_GT(cuts, 100);
  EXPECT_GT(by_waiting, 0);
  EXPECT_GT(largest, 64u);  // more than there are bits in a word
}

}  // namespace
}  // namespace fusion
