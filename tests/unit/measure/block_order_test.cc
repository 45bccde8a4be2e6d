// Orders of blocks, and programs that are right in one of them alone.
#include "worker/measure/block_order.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <numeric>

#include "tests/unit/measure/time_task_fixture.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

TEST(OrderedBlocksTest, EachBlockRunsOnce) {
  EXPECT_THAT(OrderedBlocks(BlockOrder::kForward, 4), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(OrderedBlocks(BlockOrder::kBackward, 4), ElementsAre(3, 2, 1, 0));
  EXPECT_THAT(OrderedBlocks(BlockOrder::kShuffled, 0), IsEmpty());
  const std::vector<long long> shuffled = OrderedBlocks(BlockOrder::kShuffled, 1000);
  EXPECT_EQ(shuffled, OrderedBlocks(BlockOrder::kShuffled, 1000)) << "the seed is fixed";
  std::vector<long long> all(1000);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_NE(shuffled, all);
  EXPECT_THAT(shuffled, ::testing::UnorderedElementsAreArray(all));
}

// On one thread a block finds what the block before it has left, as long as they run in their order.
class BlockOrderTest : public TimeTaskTest {
 protected:
  void SetUp() override {
    setenv("OMP_NUM_THREADS", "1", 1);
    TimeTaskTest::SetUp();
  }
  void TearDown() override { unsetenv("OMP_NUM_THREADS"); }

  // A block is an entry; `error` is what it makes wrong. With `asks` it looks for the order of its blocks.
  v1::ProgramMeasurement Measured(const std::string& name, const std::string& error, bool asks) {
    const std::string order = absl::StrCat("kernel_", name, "_order");
    v1::Program* program = task_.add_programs();
    *program =
        Kernel(name, "float",
               absl::StrCat("const long long b = ", asks ? absl::StrCat(order, " ? ", order, "[i] : ") : "",
                            "i; z[b] = x[b] + y[b] + (", error, ");"),
               asks ? absl::StrCat("extern \"C\" { const long long* ", order, " = nullptr; }") : "");
    program->mutable_launches(0)->set_grid(kEntries);
    const absl::StatusOr<v1::TimeResult> result = Execute();
    EXPECT_TRUE(result.ok()) << result.status();
    if (!result.ok()) return {};
    ExpectGood(result->unfused());
    return result->programs(result->programs_size() - 1);
  }
};

constexpr char kBefore[] = "b > 0 ? z[b - 1] - (x[b - 1] + y[b - 1]) : 0";

TEST_P(BlockOrderTest, WhatIsRightInOneOrderAloneIsWrong) {
  ExpectGood(Measured("usual", kBefore, false));
  const v1::ProgramMeasurement wrong = Measured("asks", kBefore, true);
  EXPECT_EQ(wrong.outcome(), v1::WRONG_RESULT);
  EXPECT_THAT(wrong.message(), StartsWith("a run of its blocks backwards: output z: entry "));
}

TEST_P(BlockOrderTest, IndependentBlocksAreRightInEachOrder) { ExpectGood(Measured("apart", "0", true)); }

INSTANTIATE_TEST_SUITE_P(Host, BlockOrderTest, ::testing::Values(v1::HOST));

}  // namespace
}  // namespace fusion
