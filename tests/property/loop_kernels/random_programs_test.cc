// Random loops: their kernels, in random shapes, beside the C that they were made from, bit for bit.

#include "tests/property/loop_kernels/random_programs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

// FUSION_RANDOM_LOOPS=10000 runs more, of another seed.
int Programs() {
  const char* asked = std::getenv("FUSION_RANDOM_LOOPS");
  return asked == nullptr ? 300 : std::max(100, std::atoi(asked));
}
constexpr int kTogether = 100;  // that a compiler sees at once
constexpr CType kTypes[] = {CType::kInt, CType::kFloat, CType::kInt, CType::kDouble};

TEST(RandomProgramsTest, KernelsComputeWhatTheTextDoes) {
  const int programs_in_all = Programs();
  std::mt19937 random(programs_in_all == 300 ? 11 : 12);
  size_t parallel = 0, cached = 0;
  for (int first = 0; first < programs_in_all; first += kTogether) {
    std::vector<testing::RandomProgram> programs;
    for (int i = 0; i < kTogether; ++i) {
      programs.push_back(
          testing::MakeRandomProgram(random, first + i, {.type = kTypes[i % std::size(kTypes)]}));
      ASSERT_FALSE(::testing::Test::HasFailure());
      parallel += programs.back().parallel;
      for (const LoopKernel& kernel : programs.back().code.kernels) cached += !kernel.cached.empty();
    }
    testing::CompareWithC(programs, first);
    ASSERT_FALSE(::testing::Test::HasFailure());
  }
  EXPECT_GT(parallel, static_cast<size_t>(programs_in_all) / 2);
  EXPECT_GT(cached, static_cast<size_t>(programs_in_all) / 20);
}

}  // namespace
}  // namespace fusion
