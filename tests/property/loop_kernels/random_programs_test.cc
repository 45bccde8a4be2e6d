// Random loops: their kernels, in random shapes, beside the C that they were made from, bit for bit.
#include "tests/property/loop_kernels/random_programs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "tests/property/loop_kernels/host_run.h"

namespace fusion {
namespace {

using testing::ArrayBytes;
using testing::RandomProgram;
using testing::SharedObject;

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
    std::vector<RandomProgram> programs;
    std::string serial, kernels = testing::HostRuntime();
    for (int i = 0; i < kTogether; ++i) {
      programs.push_back(
          testing::MakeRandomProgram(random, first + i, {.type = kTypes[i % std::size(kTypes)]}));
      ASSERT_FALSE(::testing::Test::HasFailure());
      serial += testing::SerialSource(programs.back().program, programs.back().interface,
                                      absl::StrCat("serial", first + i));
      kernels += testing::KernelSource(programs.back().code);
      parallel += programs.back().parallel;
      for (const LoopKernel& kernel : programs.back().code.kernels) cached += !kernel.cached.empty();
    }
    const auto c = SharedObject::Compile(serial, true), device = SharedObject::Compile(kernels, false);
    ASSERT_TRUE(c != nullptr && device != nullptr);
    for (int i = 0; i < kTogether; ++i) {
      const RandomProgram& one = programs[i];
      ArrayBytes expected = testing::RandomArrays(one.interface, one.sizes, first + i), got = expected;
      testing::RunSerial(*c, absl::StrCat("serial", first + i), one.interface, one.sizes, &expected);
      testing::RunKernels(*device, one.code, one.interface, one.sizes, &got);
      for (size_t array = 0; array < expected.size(); ++array)
        ASSERT_EQ(expected[array], got[array])
            << one.interface.arrays[array].variable.name << " of " << one.text << "\n"
            << testing::KernelSource(one.code);
    }
  }
  EXPECT_GT(parallel, static_cast<size_t>(programs_in_all) / 2);
  EXPECT_GT(cached, static_cast<size_t>(programs_in_all) / 20);
}

}  // namespace
}  // namespace fusion
