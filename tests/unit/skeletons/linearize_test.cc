#include "server/skeletons/shared/linearize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace fusion {
namespace {

using ::testing::ElementsAre;

// Two chains 0 -> 1 and 2 -> 3 joined by 4: 0 and 2 load something large and leave something small after 1
// and 3.
LinearizationProblem TwoChains() {
  LinearizationProblem problem;
  problem.node_count = 5;
  problem.variables = {{10, 0, {1}}, {1, 1, {4}}, {10, 2, {3}}, {1, 3, {4}}, {1, 4, {}}};
  return problem;
}

TEST(Linearize, FinishesOneChainBeforeTheOther) {
  const Linearization found = Linearize(TwoChains());
  EXPECT_THAT(found.order, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(found.active_size, 12);  // at 3: its operand, its result, and the result of 1
  EXPECT_TRUE(found.proved_optimal);
  EXPECT_EQ(ActiveSize(TwoChains(), {0, 2, 1, 3, 4}), 21);
}

TEST(Linearize, LeavesTheFirstOrderWhenAnotherIsBetter) {
  // 0 and 1 are independent; 2 reads 1. First 1, 2 and then 0 keeps 1's large result for a shorter time.
  LinearizationProblem problem;
  problem.node_count = 4;
  problem.variables = {{5, 0, {3}}, {9, 1, {2}}, {1, 2, {3}}};
  const Linearization found = Linearize(problem);
  EXPECT_THAT(found.order, ElementsAre(1, 2, 0, 3));
  EXPECT_EQ(found.active_size, 10);
}

TEST(Linearize, HoldsWhatIsStagedFromStartToEnd) {
  LinearizationProblem problem;
  problem.node_count = 2;
  problem.variables = {{4, -1, {1}}, {2, 0, {1}}, {3, 1, {}}};
  EXPECT_EQ(Linearize(problem).active_size, 9);
  EXPECT_THAT(ActiveIntervals(problem, {0, 1}),
              ElementsAre(ActiveInterval{1, 1, 4}, ActiveInterval{0, 1, 2}, ActiveInterval{1, 1, 3}));
  problem.variables[0].from_start = true;
  problem.variables[1].to_end = true;
  EXPECT_THAT(ActiveIntervals(problem, {0, 1}),
              ElementsAre(ActiveInterval{0, 1, 4}, ActiveInterval{0, 1, 2}, ActiveInterval{1, 1, 3}));
}

TEST(Linearize, TakesTheSmallestNodesAmongEquals) {
  LinearizationProblem problem;
  problem.node_count = 3;
  problem.variables = {{1, 0, {}}, {1, 1, {}}, {1, 2, {0}}};
  EXPECT_THAT(Linearize(problem).order, ElementsAre(1, 2, 0));
}

// 30 independent chains: far more orders and down-sets than steps.
TEST(Linearize, StopsAtTheStepLimit) {
  LinearizationProblem problem;
  problem.node_count = 61;
  std::vector<int> ends;
  for (int chain = 0; chain < 30; ++chain) {
    problem.variables.push_back({3 + chain % 5, 2 * chain, {2 * chain + 1}});
    problem.variables.push_back({1 + chain % 3, 2 * chain + 1, {60}});
  }
  problem.variables.push_back({20, 60, {}});
  problem.variables.push_back({30, -1, {0, 58}});
  const Linearization found = Linearize(problem, {5000});
  EXPECT_EQ(found.order.size(), 61u);
  EXPECT_EQ(found.active_size, ActiveSize(problem, found.order));
}

// `count` nodes that each leave something for the sum of all, which 2 * count - 1 more nodes make, all of the
// former first.
LinearizationProblem SumOfAll(int count) {
  LinearizationProblem problem;
  problem.node_count = 2 * count - 1;
  problem.variables.push_back({1, -1, {}});
  for (int k = 0; k < count; ++k) problem.variables[0].consumers.push_back(k);
  for (int k = 0; k < count; ++k) problem.variables.push_back({1, k, {k == 0 ? count : count + k - 1}});
  for (int k = 1; k < count; ++k) {
    problem.variables.push_back({1, count + k - 1, {}});
    if (k + 1 < count) problem.variables.back().consumers.push_back(count + k);
  }
  return problem;
}

TEST(Linearize, FindsAGoodOrderOfManyNodesInFewStepsOrNone) {
  for (int count : {20, 200}) {
    const LinearizationProblem problem = SumOfAll(count);
    std::vector<int> first(problem.node_count);
    std::iota(first.begin(), first.end(), 0);
    EXPECT_GT(ActiveSize(problem, first), count);
    const Linearization found = Linearize(problem, {.max_steps = 200});
    EXPECT_EQ(found.active_size, 4) << "the input, a sum, an operand and the next sum";
    EXPECT_EQ(found.active_size, ActiveSize(problem, found.order));
  }
}

TEST(Linearize, GivesABoundWhatItCannotProve) {
  LinearizationProblem problem = SumOfAll(200);
  const Linearization found = Linearize(problem);
  EXPECT_FALSE(found.proved_optimal);
  EXPECT_EQ(found.lower_bound, 3) << "two operands and their sum";
  const Linearization small = Linearize(SumOfAll(4));
  EXPECT_TRUE(small.proved_optimal);
  EXPECT_EQ(small.lower_bound, small.active_size);
}

TEST(Linearize, TakesLargeFusionsInTheirFirstOrder) {
  LinearizationProblem problem;
  problem.node_count = kMaxLinearizedNodes + 1;
  for (int node = 0; node + 1 < problem.node_count; ++node)
    problem.variables.push_back({1, node, {node + 1}});
  const Linearization found = Linearize(problem);
  EXPECT_EQ(found.order.size(), static_cast<size_t>(problem.node_count));
  EXPECT_EQ(found.active_size, 2);
  EXPECT_TRUE(found.proved_optimal);  // it meets the bound
}

TEST(Linearize, TakesAnEmptyProblem) {
  const Linearization found = Linearize({});
  EXPECT_TRUE(found.order.empty());
  EXPECT_EQ(found.active_size, 0);
  EXPECT_TRUE(found.proved_optimal);
}

}  // namespace
}  // namespace fusion
