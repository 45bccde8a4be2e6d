// The branch and bound agrees with trying every order.
#include "server/skeletons/shared/linearize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace fusion {
namespace {

LinearizationProblem RandomLinearization(int count, std::mt19937& random) {
  LinearizationProblem problem;
  problem.node_count = count;
  const bool staged = random() % 3 == 0;
  auto size = [&] { return static_cast<int64_t>(random() % 10); };
  for (int node = 0; node < count; ++node) {
    FusionVariable result{size(), node};
    for (int later = node + 1; later < count; ++later)
      if (random() % 3 == 0) result.consumers.push_back(later);
    result.to_end = (staged && result.consumers.empty()) || random() % 8 == 0;
    problem.variables.push_back(std::move(result));
  }
  for (int loaded = random() % 4; loaded > 0; --loaded) {
    FusionVariable input{size()};
    for (int node = 0; node < count; ++node)
      if (random() % 3 == 0) input.consumers.push_back(node);
    if (input.consumers.empty()) input.consumers.push_back(static_cast<int>(random() % count));
    input.from_start = staged;
    input.to_end = random() % 8 == 0;
    problem.variables.push_back(std::move(input));
  }
  // The first topological order is not always the one by number.
  std::vector<int> number(count);
  std::iota(number.begin(), number.end(), 0);
  std::shuffle(number.begin(), number.end(), random);
  for (FusionVariable& variable : problem.variables) {
    if (variable.producer >= 0) variable.producer = number[variable.producer];
    for (int& consumer : variable.consumers) consumer = number[consumer];
  }
  return problem;
}

bool IsTopological(const LinearizationProblem& problem, const std::vector<int>& order) {
  std::vector<int> position(problem.node_count, -1);
  for (size_t i = 0; i < order.size(); ++i) position[order[i]] = static_cast<int>(i);
  if (std::count(position.begin(), position.end(), -1) > 0) return false;
  for (const FusionVariable& variable : problem.variables)
    if (variable.producer >= 0)
      for (int consumer : variable.consumers)
        if (position[consumer] <= position[variable.producer]) return false;
  return true;
}

// M_lb straight from its definition: position by position, variable by variable.
int64_t ActiveSizeByDefinition(const LinearizationProblem& problem, const std::vector<int>& order) {
  int64_t largest = 0;
  for (size_t at = 0; at < order.size(); ++at) {
    int64_t sum = 0;
    for (const FusionVariable& variable : problem.variables) {
      bool touched_before = variable.from_start && variable.producer < 0, touched_after = variable.to_end;
      for (size_t i = 0; i < order.size(); ++i) {
        const bool touches = variable.producer == order[i] ||
                             std::count(variable.consumers.begin(), variable.consumers.end(), order[i]) > 0;
        touched_before |= touches && i <= at;
        touched_after |= touches && i >= at;
      }
      if (touched_before && touched_after) sum += variable.size;
    }
    largest = std::max(largest, sum);
  }
  return largest;
}

void ExpectTheFirstOfTheBest(const LinearizationProblem& problem) {
  std::vector<int> order(problem.node_count), best_order;
  std::iota(order.begin(), order.end(), 0);
  int64_t best = 0;
  do {
    if (!IsTopological(problem, order)) continue;
    const int64_t active = ActiveSizeByDefinition(problem, order);
    ASSERT_EQ(ActiveSize(problem, order), active);
    if (best_order.empty() || active < best) {
      best = active;
      best_order = order;
    }
  } while (std::next_permutation(order.begin(), order.end()));
  const Linearization found = Linearize(problem);
  EXPECT_TRUE(found.proved_optimal);
  EXPECT_EQ(found.active_size, best);
  EXPECT_EQ(found.order, best_order);
}

TEST(Linearize, AgreesWithAllOrders) {
  std::mt19937 random(5);
  for (int round = 0; round < 400; ++round) {
    ExpectTheFirstOfTheBest(RandomLinearization(1 + round % 7, random));
    ASSERT_FALSE(::testing::Test::HasFailure()) << "round " << round;
  }
}

// Every DAG of up to four nodes, every size of 1 or 2 of each result, with and without an input that any of
// the nodes read, staged and not.
TEST(Linearize, AgreesWithAllOrdersOfEverySmallGraph) {
  int cases = 0;
  for (int count = 1; count <= 4; ++count)
    for (int edges = 0; edges < 1 << (count * (count - 1) / 2); ++edges)
      for (int sizes = 0; sizes < 1 << count; ++sizes)
        for (int readers = 0; readers < 1 << count; ++readers)
          for (bool staged : {false, true}) {
            LinearizationProblem problem{.node_count = count};
            int edge = 0;
            for (int node = 0; node < count; ++node) {
              FusionVariable result{1 + (sizes >> node & 1), node};
              for (int later = node + 1; later < count; ++later)
                if (edges >> edge++ & 1) result.consumers.push_back(later);
              result.to_end = staged && result.consumers.empty();
              problem.variables.push_back(std::move(result));
            }
            if (readers != 0) {
              FusionVariable input{.size = 1, .from_start = staged};
              for (int node = 0; node < count; ++node)
                if (readers >> node & 1) input.consumers.push_back(node);
              problem.variables.push_back(std::move(input));
            }
            ExpectTheFirstOfTheBest(problem);
            ++cases;
            ASSERT_FALSE(::testing::Test::HasFailure())
                << count << " nodes, edges " << edges << ", sizes " << sizes << ", readers " << readers
                << (staged ? ", staged" : "");
          }
  EXPECT_EQ(cases, 8 + 64 + 1024 + 32768);
}

TEST(Linearize, IsValidAndNoWorseThanTheFirstOrderAtAnyStepLimit) {
  std::mt19937 random(6);
  for (int round = 0; round < 60; ++round) {
    const LinearizationProblem problem = RandomLinearization(12, random);
    const Linearization best = Linearize(problem);
    EXPECT_TRUE(best.proved_optimal);
    int64_t last = std::numeric_limits<int64_t>::max();
    for (int64_t steps : {0, 10, 100, 1000, 100000}) {
      const Linearization found = Linearize(problem, {steps});
      EXPECT_TRUE(IsTopological(problem, found.order));
      EXPECT_EQ(found.active_size, ActiveSizeByDefinition(problem, found.order));
      EXPECT_LE(found.active_size, last);
      EXPECT_GE(found.active_size, best.active_size);
      if (found.proved_optimal) {
        EXPECT_EQ(found.active_size, best.active_size);
      }
      last = found.active_size;
    }
  }
}

}  // namespace
}  // namespace fusion
