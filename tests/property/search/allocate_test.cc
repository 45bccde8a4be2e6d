// Exact allocation agrees with trying every offset; greedy >= exact >= lower bound; nothing overlaps.
#include "server/skeletons/element/allocate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

namespace fusion {
namespace {

std::vector<ActiveInterval> RandomVariables(int count, int positions, int largest, std::mt19937& random) {
  std::vector<ActiveInterval> variables;
  for (int i = 0; i < count; ++i) {
    int first = static_cast<int>(random() % positions), last = static_cast<int>(random() % positions);
    if (first > last) std::swap(first, last);
    variables.push_back({first, last, static_cast<int64_t>(random() % (largest + 1))});
  }
  return variables;
}

// Entry by entry and position by position: no entry of the array belongs to two active variables.
bool Overlaps(const std::vector<ActiveInterval>& variables, const std::vector<int64_t>& offsets) {
  int positions = 0;
  int64_t size = 0;
  for (size_t i = 0; i < variables.size(); ++i) {
    positions = std::max(positions, variables[i].last + 1);
    size = std::max(size, offsets[i] + variables[i].size);
  }
  for (int at = 0; at < positions; ++at) {
    std::vector<char> used(size, 0);
    for (size_t i = 0; i < variables.size(); ++i) {
      if (at < variables[i].first || at > variables[i].last) continue;
      for (int64_t entry = offsets[i]; entry < offsets[i] + variables[i].size; ++entry)
        if (used[entry]++) return true;
    }
  }
  return false;
}

// Whether some allocation fits into `size`, by trying every offset of every variable.
bool Fits(const std::vector<ActiveInterval>& variables, int64_t size) {
  std::vector<int64_t> offsets;
  std::function<bool()> place = [&] {
    const size_t index = offsets.size();
    if (index == variables.size()) return true;
    for (int64_t offset = 0; offset + variables[index].size <= size; ++offset) {
      bool free = true;
      for (size_t i = 0; i < index && free; ++i)
        free = variables[i].last < variables[index].first || variables[index].last < variables[i].first ||
               offsets[i] + variables[i].size <= offset || offset + variables[index].size <= offsets[i];
      if (!free) continue;
      offsets.push_back(offset);
      if (place()) return true;
      offsets.pop_back();
    }
    return false;
  };
  return place();
}

void ExpectSound(const std::vector<ActiveInterval>& variables, const Allocation& allocation) {
  ASSERT_EQ(allocation.offsets.size(), variables.size());
  int64_t size = 0;
  for (size_t i = 0; i < variables.size(); ++i) {
    EXPECT_GE(allocation.offsets[i], 0);
    size = std::max(size, allocation.offsets[i] + variables[i].size);
  }
  EXPECT_EQ(allocation.size, size);
  EXPECT_FALSE(Overlaps(variables, allocation.offsets));
}

// Greedy and exact are sound, and nothing smaller than the exact one fits. Whether the greedy one is larger.
bool ExpectSmallest(const std::vector<ActiveInterval>& variables) {
  const Allocation greedy = AllocateGreedy(variables), exact = AllocateExact(variables);
  ExpectSound(variables, greedy);
  ExpectSound(variables, exact);
  EXPECT_TRUE(exact.proved_optimal);
  EXPECT_GE(greedy.size, exact.size);
  EXPECT_GE(exact.size, AllocationLowerBound(variables));
  EXPECT_TRUE(!greedy.proved_optimal || greedy.size == exact.size);
  EXPECT_TRUE(Fits(variables, exact.size));
  EXPECT_TRUE(exact.size == 0 || !Fits(variables, exact.size - 1));
  return greedy.size > exact.size;
}

TEST(Allocate, ExactAgreesWithEveryOffset) {
  std::mt19937 random(8);
  int greedy_larger = 0;
  for (int round = 0; round < 3000; ++round) {
    greedy_larger += ExpectSmallest(RandomVariables(1 + round % 6, 6, 5, random));
    ASSERT_FALSE(::testing::Test::HasFailure()) << "round " << round;
  }
  EXPECT_GT(greedy_larger, 0);  // the cases are hard enough to tell the two apart
}

// Up to four variables of sizes 1 to 3 at up to four positions, each choice of them once.
TEST(Allocate, ExactAgreesWithEveryOffsetOfEverySmallCase) {
  std::vector<ActiveInterval> kinds;
  for (int first = 0; first < 4; ++first)
    for (int last = first; last < 4; ++last)
      for (int64_t size = 1; size <= 3; ++size) kinds.push_back({first, last, size});
  std::vector<ActiveInterval> variables;
  int cases = -1;  // but for that of no variables
  std::function<void(size_t)> add = [&](size_t kind) {
    if (!variables.empty()) ExpectSmallest(variables);
    ++cases;
    if (variables.size() == 4) return;
    for (; kind < kinds.size() && !::testing::Test::HasFailure(); ++kind) {
      variables.push_back(kinds[kind]);
      add(kind);
      variables.pop_back();
    }
  };
  add(0);
  EXPECT_EQ(cases, 30 + 465 + 4960 + 40920);  // multisets of one to four of 30 kinds
}

// At every position exactly `load` is active: no room for gaps, so that sometimes the bound cannot be met.
std::vector<ActiveInterval> SaturatedVariables(int positions, int64_t load, std::mt19937& random) {
  std::vector<ActiveInterval> variables;
  std::vector<size_t> active;
  for (int at = 0; at < positions; ++at) {
    std::erase_if(active, [&](size_t) { return random() % 3 == 0; });
    int64_t sum = 0;
    for (size_t i : active) sum += variables[i].size;
    while (sum < load) {
      const int64_t size = 1 + static_cast<int64_t>(random() % std::min(load - sum, load - 1));
      active.push_back(variables.size());
      variables.push_back({at, at, size});
      sum += size;
    }
    for (size_t i : active) variables[i].last = at;
  }
  return variables;
}

TEST(Allocate, ExactIsProvedWhereTheBoundCannotBeMet) {
  std::mt19937 random(10);
  int above_bound = 0;
  for (int round = 0; round < 4000; ++round) {
    const std::vector<ActiveInterval> variables = SaturatedVariables(6 + round % 3, 5 + round % 2, random);
    const Allocation exact = AllocateExact(variables);
    ExpectSound(variables, exact);
    EXPECT_TRUE(exact.proved_optimal);
    if (exact.size == AllocationLowerBound(variables)) continue;
    ++above_bound;
    EXPECT_FALSE(Fits(variables, exact.size - 1)) << "round " << round;
  }
  EXPECT_GT(above_bound, 0);
}

TEST(Allocate, StaysSoundOnLargerProblemsAndAtAnyStepLimit) {
  std::mt19937 random(9);
  int greedy_larger = 0;
  for (int round = 0; round < 100; ++round) {
    const std::vector<ActiveInterval> variables = RandomVariables(8 + round % 17, 12, 25, random);
    const Allocation greedy = AllocateGreedy(variables);
    int64_t last = greedy.size;
    for (int64_t steps : {0, 100, 10'000}) {
      const Allocation exact = AllocateExact(variables, {steps});
      ExpectSound(variables, exact);
      EXPECT_LE(exact.size, last);
      EXPECT_GE(exact.size, AllocationLowerBound(variables));
      last = exact.size;
    }
    greedy_larger += greedy.size > last;
  }
  EXPECT_GT(greedy_larger, 0);
}

}  // namespace
}  // namespace fusion
