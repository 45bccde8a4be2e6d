#include "server/cover/relaxation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/cover/cover_solver.h"
#include "server/cover/subset_row_cuts.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

struct SetTime {
  std::vector<int> members;
  double seconds;
};
SetProblem Problem(std::vector<std::vector<int>> successors, const std::vector<SetTime>& sets) {
  CoverProblem problem;
  problem.node_count = static_cast<int>(successors.size());
  problem.successors = std::move(successors);
  for (const auto& [members, seconds] : sets) {
    NodeSet nodes;
    for (int node : members) nodes.Add(node);
    problem.columns.push_back({nodes, seconds});
  }
  return MakeSetProblem(problem).value();
}
Deadline Soon() { return DeadlineAfter(std::chrono::seconds(10)); }

// Three nodes of which any two go together well: taken by halves they cost 1.5, but no cover costs less
// than 2.
SetProblem Triangle() {
  return Problem({{}, {}, {}}, {{{0}, 1}, {{1}, 1}, {{2}, 1}, {{0, 1}, 1}, {{0, 2}, 1}, {{1, 2}, 1}});
}

TEST(Relaxation, IsABoundThatCutsOfThreeNodesRaise) {
  const SetProblem problem = Triangle();
  Relaxation relaxation(problem, 1);
  std::set<Cut> cuts;
  const std::vector<char> none(problem.sets.size(), 0);
  ASSERT_TRUE(relaxation.Solve(cuts, none, Soon()));
  EXPECT_NEAR(relaxation.seconds(), 1.5, 1e-9);
  const std::vector<Cut> found = SubsetRowCuts(problem, relaxation.shares());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].limit, 1);
  EXPECT_THAT(found[0].sets, ElementsAre(problem.Find({0, 1}), problem.Find({0, 2}), problem.Find({1, 2})));
  cuts.insert(found.begin(), found.end());
  ASSERT_TRUE(relaxation.Solve(cuts, none, Soon()));
  EXPECT_NEAR(relaxation.seconds(), 2, 1e-9);
}

TEST(Relaxation, LeavesOutSetsAndTakesThemAgain) {
  const SetProblem problem = Problem({{1}, {}}, {{{0}, 2}, {{1}, 2}, {{0, 1}, 3}});
  Relaxation relaxation(problem, 1);
  std::vector<char> out(problem.sets.size(), 0);
  ASSERT_TRUE(relaxation.Solve({}, out, Soon()));
  EXPECT_THAT(relaxation.shares(), ElementsAre(Pair(problem.Find({0, 1}), ::testing::DoubleNear(1, 1e-9))));
  out[problem.Find({0, 1})] = 1;
  ASSERT_TRUE(relaxation.Solve({}, out, Soon()));
  EXPECT_NEAR(relaxation.seconds(), 4, 1e-9);
  EXPECT_TRUE(relaxation.feasible());
  out[problem.Find({0})] = 1;
  ASSERT_TRUE(relaxation.Solve({}, out, Soon()));
  EXPECT_FALSE(relaxation.feasible());
  out.assign(out.size(), 0);
  ASSERT_TRUE(relaxation.Solve({}, out, Soon()));
  EXPECT_NEAR(relaxation.seconds(), 3, 1e-9);
  EXPECT_TRUE(relaxation.feasible());
}

TEST(SubsetRowCuts, NeedNodesThatShareSetsInPart) {
  const SetProblem problem = Triangle();
  EXPECT_THAT(SubsetRowCuts(problem, {{problem.Find({0, 1}), 1.0}, {problem.Find({2}), 1.0}}), IsEmpty());
  EXPECT_THAT(SubsetRowCuts(problem, {{problem.Find({0, 1}), 0.5}, {problem.Find({0, 2}), 0.5}}), IsEmpty());
}

// Of five nodes all pairs go together; each is taken by a quarter, two and a half in all, and no three nodes
// are in more than three quarters.
TEST(FiveNodeCuts, AreFoundWhereThreeNodesBreakNothing) {
  std::vector<SetTime> sets;
  for (int a = 0; a < 5; ++a) sets.push_back({{a}, 1});
  for (int a = 0; a < 5; ++a)
    for (int b = a + 1; b < 5; ++b) sets.push_back({{a, b}, 1});
  const SetProblem problem = Problem({{}, {}, {}, {}, {}}, sets);
  std::vector<std::pair<int, double>> shares;
  std::vector<int> pairs;
  for (int a = 0; a < 5; ++a)
    for (int b = a + 1; b < 5; ++b) pairs.push_back(problem.Find({a, b}));
  std::sort(pairs.begin(), pairs.end());
  for (int pair : pairs) shares.emplace_back(pair, 0.25);
  EXPECT_THAT(SubsetRowCuts(problem, shares), IsEmpty());
  const std::vector<Cut> cuts = FiveNodeCuts(problem, shares);
  ASSERT_EQ(cuts.size(), 1u);
  EXPECT_EQ(cuts[0].limit, 2);
  EXPECT_EQ(cuts[0].sets, pairs);
  // Taken by a fifth they are two.
  for (auto& [set, share] : shares) share = 0.2;
  EXPECT_THAT(FiveNodeCuts(problem, shares), IsEmpty());
}

TEST(WaitingPairCuts, HoldForAllSetsThatWouldWaitForEachOther) {
  // c = 0, a = 1, b = 2, d = 3 with c->b, a->b, c->d, a->d: {a,d} and {c,b} wait for each other. e = 4 stands
  // alone.
  const SetProblem problem = Problem({{2, 3}, {2, 3}, {}, {}, {}}, {{{0}, 1},
                                                                    {{1}, 1},
                                                                    {{2}, 1},
                                                                    {{3}, 1},
                                                                    {{4}, 1},
                                                                    {{1, 3}, 1},
                                                                    {{1, 3, 4}, 1},
                                                                    {{0, 2}, 1},
                                                                    {{0, 1, 2}, 1}});
  const std::vector<Cut> cuts = WaitingPairCuts(
      problem, {{problem.Find({0, 2}), 0.8}, {problem.Find({1, 3}), 0.4}, {problem.Find({1, 3, 4}), 0.4}});
  ASSERT_EQ(cuts.size(), 1u);
  EXPECT_EQ(cuts[0].limit, 1);
  EXPECT_THAT(cuts[0].sets, ::testing::UnorderedElementsAre(problem.Find({0, 2}), problem.Find({1, 3}),
                                                            problem.Find({1, 3, 4})));
  EXPECT_THAT(WaitingPairCuts(problem, {{problem.Find({0, 2}), 0.5}, {problem.Find({1, 3}), 0.5}}),
              IsEmpty());
}

}  // namespace
}  // namespace fusion
