// TimeTasks on a GPU: the scenarios of the host, on the first CUDA device.
#include "tests/unit/measure/time_task_scenarios.h"

namespace fusion {

INSTANTIATE_TEST_SUITE_P(Cuda, TimeTaskTest, ::testing::Values(v1::CUDA));

class CudaDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<v1::DescribeReply> reply = runner_.Describe(v1::CUDA);
    ASSERT_TRUE(reply.ok()) << reply.status();
    if (reply->devices().empty()) GTEST_SKIP() << "SKIP: " << reply->notes(0);
    device_ = reply->devices(0);
  }
  RunnerProcess runner_;
  v1::DeviceDescription device_;
};

TEST_F(CudaDeviceTest, IsDescribed) {
  EXPECT_EQ(device_.target(), v1::CUDA);
  EXPECT_EQ(device_.arch().substr(0, 3), "sm_");
  EXPECT_EQ(device_.uuid().substr(0, 4), "GPU-");
  EXPECT_GE(device_.multiprocessors(), 1);
  EXPECT_GE(device_.shared_bytes_per_block(), 48 << 10);
  EXPECT_GE(device_.registers_per_multiprocessor(), 32 << 10);
  EXPECT_GT(device_.copy_bytes_per_second(), 1e10);
  EXPECT_LT(device_.copy_bytes_per_second(), 1e14);
  EXPECT_GT(device_.peak_flops(), 1e11);
  EXPECT_GT(device_.launch_seconds(), 1e-8);
  EXPECT_LT(device_.launch_seconds(), 1e-3);
  EXPECT_NE(device_.driver_version(), "");
}

TEST_F(CudaDeviceTest, RunsTheKnownKernel) { EXPECT_TRUE(runner_.Probe(device_.uuid()).ok()); }

}  // namespace fusion
