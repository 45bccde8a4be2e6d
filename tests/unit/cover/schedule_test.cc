#include "server/cover/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

SetProblem ProblemOfSets(std::vector<std::vector<int>> successors,
                         const std::vector<std::vector<int>>& sets) {
  CoverProblem problem;
  problem.node_count = static_cast<int>(successors.size());
  problem.successors = std::move(successors);
  for (const std::vector<int>& members : sets) {
    NodeSet nodes;
    for (int node : members) nodes.Add(node);
    problem.columns.push_back({nodes, 1.0});
  }
  return MakeSetProblem(problem).value();
}

std::vector<int> Numbers(const SetProblem& problem, const std::vector<std::vector<int>>& sets) {
  std::vector<int> numbers;
  for (const std::vector<int>& members : sets) numbers.push_back(problem.Find(members));
  return numbers;
}

TEST(ScheduleOrder, PutsProducersFirstAndSmallNodesBefore) {
  const SetProblem problem = ProblemOfSets({{}, {}, {0}, {}}, {{0}, {1, 3}, {2}});
  const auto order = ScheduleOrder(problem, Numbers(problem, {{0}, {1, 3}, {2}}));
  ASSERT_TRUE(order.has_value());
  EXPECT_EQ(*order, Numbers(problem, {{1, 3}, {2}, {0}}));
}

// Edges 0->1, 2->3, 4->5: {1,2}, {3,4} and {5,0} form a cycle of three.
SetProblem Ring() {
  return ProblemOfSets({{1}, {}, {3}, {}, {5}, {}},
                       {{0}, {1}, {2}, {3}, {4}, {5}, {1, 2}, {3, 4}, {0, 5}, {0, 3, 4}, {3, 4, 5}});
}

TEST(ScheduleOrder, SeesACycle) {
  const SetProblem problem = Ring();
  EXPECT_FALSE(ScheduleOrder(problem, Numbers(problem, {{1, 2}, {3, 4}, {0, 5}})).has_value());
  EXPECT_TRUE(ScheduleOrder(problem, Numbers(problem, {{1, 2}, {3, 4}, {0}, {5}})).has_value());
}

TEST(CycleCuts, HoldForAllSetsThatWouldFormTheSameCycle) {
  // A fourth pair of nodes lets sets contain the ring's crossings and more.
  const SetProblem problem =
      ProblemOfSets({{1}, {}, {3}, {}, {5}, {}, {}},
                    {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {1, 2}, {1, 2, 6}, {3, 4}, {3, 4, 6}, {0, 5}});
  const auto cuts = CycleCuts(problem, Numbers(problem, {{1, 2}, {3, 4, 6}, {0, 5}}));
  ASSERT_EQ(cuts.size(), 1u);
  EXPECT_EQ(cuts[0].limit, 2);
  EXPECT_THAT(cuts[0].sets, ::testing::UnorderedElementsAreArray(
                                Numbers(problem, {{1, 2}, {1, 2, 6}, {3, 4}, {3, 4, 6}, {0, 5}})));
}

TEST(CycleCuts, LeaveOutSetsWithCrossingsOfTwo) {
  const SetProblem problem = Ring();
  const auto cuts = CycleCuts(problem, Numbers(problem, {{1, 2}, {3, 4}, {0, 5}}));
  ASSERT_EQ(cuts.size(), 1u);
  // {0,3,4} holds crossings of two sets: with {1,2} it forms a cycle of its own, but it must not be counted
  // here.
  EXPECT_THAT(cuts[0].sets,
              UnorderedElementsAre(problem.Find({1, 2}), problem.Find({3, 4}), problem.Find({0, 5})));
}

TEST(SplitCycles, SplitsTheCheapestSetAndKeepsTheRest) {
  const SetProblem problem = Ring();
  const auto partition = SplitCycles(problem, Numbers(problem, {{1, 2}, {3, 4}, {0, 5}}));
  ASSERT_TRUE(partition.has_value());
  EXPECT_TRUE(problem.IsExactCover(partition->sets));
  EXPECT_EQ(ScheduleOrder(problem, partition->sets), partition->sets);
  EXPECT_EQ(partition->sets.size(), 4u);
  EXPECT_EQ(partition->seconds, 4);
}

TEST(SplitCycles, NeedsSetsToSplitInto) {
  const SetProblem problem = ProblemOfSets({{1, 3}, {}, {1, 3}, {}}, {{0, 3}, {1, 2}});
  EXPECT_FALSE(SplitCycles(problem, {0, 1}).has_value());
}

}  // namespace
}  // namespace fusion
