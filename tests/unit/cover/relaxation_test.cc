#include "server/cover/relaxation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/cover/conflict_cuts.h"
#include "server/cover/cover_solver.h"
#include "server/cover/subset_row_cuts.h"
#include "server/cover/zero_half_cuts.h"

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

TEST(Relaxation, CountsASetTwiceThatStandsInACutTwice) {
  const SetProblem problem = Triangle();
  std::vector<char> out(problem.sets.size(), 0);
  out[problem.Find({0, 2})] = out[problem.Find({1, 2})] = 1;
  const int pair = problem.Find({0, 1});
  for (const bool there_before : {true, false}) {
    SCOPED_TRACE(there_before);
    Relaxation relaxation(problem, 1);
    if (there_before) {
      ASSERT_TRUE(relaxation.Solve({}, out, Soon()));
      EXPECT_NEAR(relaxation.seconds(), 2, 1e-9);
    }
    ASSERT_TRUE(relaxation.Solve({Cut{.sets = {pair, pair}, .limit = 1}}, out, Soon()));
    EXPECT_NEAR(relaxation.seconds(), 2.5, 1e-9);
    EXPECT_THAT(relaxation.shares(), ::testing::Contains(Pair(pair, ::testing::DoubleNear(0.5, 1e-9))));
  }
}

TEST(SubsetRowCuts, NeedNodesThatShareSetsInPart) {
  const SetProblem problem = Triangle();
  EXPECT_THAT(SubsetRowCuts(problem, {{problem.Find({0, 1}), 1.0}, {problem.Find({2}), 1.0}}), IsEmpty());
  EXPECT_THAT(SubsetRowCuts(problem, {{problem.Find({0, 1}), 0.5}, {problem.Find({0, 2}), 0.5}}), IsEmpty());
}

std::vector<Cut> Halves(const SetProblem& problem, const std::vector<std::pair<int, double>>& shares) {
  return ZeroHalfCuts(problem, {}, std::vector<std::vector<int>>(problem.sets.size()), shares, 2);
}

// Of five nodes all pairs go together; each is taken by a quarter, two and a half in all, and no three nodes
// are in more than three quarters.
TEST(ZeroHalfCuts, AreFoundWhereThreeNodesBreakNothing) {
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
  const std::vector<Cut> cuts = Halves(problem, shares);
  ASSERT_EQ(cuts.size(), 1u);
  EXPECT_EQ(cuts[0].limit, 2);
  EXPECT_EQ(cuts[0].sets, pairs);
  // Taken by a fifth they are two.
  for (auto& [set, share] : shares) share = 0.2;
  EXPECT_THAT(Halves(problem, shares), IsEmpty());
}

// Three pairs, of which cuts say that of each two at most one is taken: halved, their sum says it of all.
TEST(ZeroHalfCuts, AddUpKnownCutsToo) {
  std::vector<SetTime> sets = {{{0, 1}, 1}, {{2, 3}, 1}, {{4, 5}, 1}};
  for (int node = 0; node < 6; ++node) sets.push_back({{node}, 1});
  const SetProblem problem = Problem({{}, {}, {}, {}, {}, {}}, sets);
  const int a = problem.Find({0, 1}), b = problem.Find({2, 3}), c = problem.Find({4, 5});
  const std::vector<Cut> known = {
      {.sets = {a, b}, .limit = 1}, {.sets = {a, c}, .limit = 1}, {.sets = {b, c}, .limit = 1}};
  std::vector<std::vector<int>> cuts_of(problem.sets.size());
  cuts_of[a] = {0, 1};
  cuts_of[b] = {0, 2};
  cuts_of[c] = {1, 2};
  std::vector<std::pair<int, double>> shares;
  for (size_t set = 0; set < problem.sets.size(); ++set) shares.emplace_back(set, 0.5);
  EXPECT_THAT(Halves(problem, shares), IsEmpty());
  EXPECT_THAT(ZeroHalfCuts(problem, {&known[0], &known[1], &known[2]}, cuts_of, shares, 2),
              ElementsAre(Cut{.sets = {a, b, c}, .limit = 1}));
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
