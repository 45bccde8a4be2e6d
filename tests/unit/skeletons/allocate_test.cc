#include "server/skeletons/element/allocate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fusion {
namespace {

using ::testing::ElementsAre;

TEST(AllocateGreedy, ReusesWhatIsNoLongerActive) {
  const Allocation found = AllocateGreedy({{0, 1, 4}, {1, 2, 3}, {2, 3, 4}});
  EXPECT_THAT(found.offsets, ElementsAre(0, 4, 0));
  EXPECT_EQ(found.size, 7);
  EXPECT_TRUE(found.proved_optimal);
}

TEST(AllocateGreedy, FillsTheFirstGapThatIsLargeEnough) {
  // 0 and 2 stay; 1 leaves a gap of 3 between them: too small for 4, right for 2.
  const Allocation found = AllocateGreedy({{0, 9, 2}, {0, 1, 3}, {0, 9, 1}, {2, 9, 4}, {3, 9, 2}});
  EXPECT_THAT(found.offsets, ElementsAre(0, 2, 5, 6, 2));
}

// In order of first use the greedy allocation puts 2 above 1 and has no room left below for 3.
const std::vector<ActiveInterval>& Fragmented() {
  static const auto* variables = new std::vector<ActiveInterval>{{0, 1, 1}, {0, 3, 1}, {2, 3, 2}};
  return *variables;
}

TEST(AllocateExact, MovesAnEarlierVariableForALaterOne) {
  EXPECT_EQ(AllocateGreedy(Fragmented()).size, 4);
  EXPECT_FALSE(AllocateGreedy(Fragmented()).proved_optimal);
  const Allocation found = AllocateExact(Fragmented());
  EXPECT_EQ(found.size, 3);
  EXPECT_TRUE(found.proved_optimal);
}

TEST(AllocateExact, KeepsTheGreedyAllocationAtTheStepLimit) {
  const Allocation found = AllocateExact(Fragmented(), {0});
  EXPECT_EQ(found.size, 4);
  EXPECT_FALSE(found.proved_optimal);
  EXPECT_EQ(found.offsets, AllocateGreedy(Fragmented()).offsets);
}

TEST(AllocationLowerBound, IsTheLargestSumActiveAtOnce) {
  EXPECT_EQ(AllocationLowerBound({{0, 1, 4}, {1, 2, 3}, {2, 3, 5}}), 8);
  EXPECT_EQ(AllocationLowerBound({}), 0);
}

TEST(Allocate, TakesNothingAndVariablesWithoutSize) {
  EXPECT_EQ(AllocateExact({}).size, 0);
  EXPECT_TRUE(AllocateExact({}).proved_optimal);
  const Allocation found = AllocateExact({{0, 2, 0}, {0, 2, 3}, {1, 1, 0}});
  EXPECT_EQ(found.size, 3);
  EXPECT_TRUE(found.proved_optimal);
}

}  // namespace
}  // namespace fusion
