#include "worker/measure/processors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace fusion {
namespace {

using ::testing::Eq;
using ::testing::Optional;

class ProcessorQuotaTest : public ::testing::Test {
 protected:
  ~ProcessorQuotaTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::filesystem::path& file, absl::string_view text) {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }

  const std::filesystem::path root_ = std::filesystem::path(::testing::TempDir()) /
                                      ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(ProcessorQuotaTest, TheLeastOfAGroupAndThoseAboveItCounts) {
  Write("cpu.max", "max 100000\n");
  Write("farm.slice/cpu.max", "250000 100000\n");
  Write("farm.slice/worker.service/cpu.max", "800000 100000\n");
  EXPECT_THAT(ProcessorQuota("0::/farm.slice/worker.service\n", root_), Optional(2.5));
  Write("farm.slice/worker.service/cpu.max", "50000 100000\n");
  EXPECT_THAT(ProcessorQuota("0::/farm.slice/worker.service\n", root_), Optional(0.5));
}

TEST_F(ProcessorQuotaTest, AContainersGroupMayBeMountedAsTheRoot) {
  Write("cpu.max", "150000 100000\n");
  EXPECT_THAT(ProcessorQuota("0::/\n", root_), Optional(1.5));
  EXPECT_THAT(ProcessorQuota("0::/docker/0123\n", root_), Optional(1.5));
}

TEST_F(ProcessorQuotaTest, TheFirstVersionHasAFileForEach) {
  Write("cpu/docker/0123/cpu.cfs_quota_us", "400000\n");
  Write("cpu/docker/0123/cpu.cfs_period_us", "100000\n");
  Write("cpu/cpu.cfs_quota_us", "-1\n");
  Write("cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_THAT(ProcessorQuota("4:memory:/docker/0123\n3:cpu,cpuacct:/docker/0123\n0::/\n", root_),
              Optional(4.0));
  EXPECT_THAT(ProcessorQuota("4:memory:/docker/0123\n3:cpuset:/docker/0123\n", root_), Eq(std::nullopt));
}

TEST_F(ProcessorQuotaTest, WithoutAQuotaThereIsNone) {
  EXPECT_THAT(ProcessorQuota("", root_), Eq(std::nullopt));
  EXPECT_THAT(ProcessorQuota("0::/farm.slice\n", root_), Eq(std::nullopt));
  Write("farm.slice/cpu.max", "max 100000\n");
  EXPECT_THAT(ProcessorQuota("0::/farm.slice\n", root_), Eq(std::nullopt));
  Write("farm.slice/cpu.max", "nonsense");
  EXPECT_THAT(ProcessorQuota("0::/farm.slice\nnonsense\n", root_), Eq(std::nullopt));
}

TEST(AvailableProcessorsTest, AProcessThatIsConfinedToOneHasOne) {
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  EXPECT_GE(AvailableProcessors(), 1);
  EXPECT_LE(AvailableProcessors(), CPU_COUNT(&all));
  std::thread([&] {  // the thread alone, and what it would start
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int processor = 0; processor < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++processor)
      if (CPU_ISSET(processor, &all)) CPU_SET(processor, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(AvailableProcessors(), 1);
  })
      .join();
}

}  // namespace
}  // namespace fusion
