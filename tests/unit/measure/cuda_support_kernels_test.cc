#include "worker/measure/cuda_support_kernels.h"

#include <gtest/gtest.h>

#include "worker/build/nvrtc_builder.h"
#include "worker/measure/cuda_driver.h"

namespace fusion {
namespace {

TEST(SupportKernelsTest, NvrtcCompilesThem) {
  absl::StatusOr<std::unique_ptr<Builder>> builder = NvrtcBuilder::Create();
  if (!builder.ok()) GTEST_SKIP() << "SKIP: " << builder.status().message();
  for (const char* arch : {"sm_80", "sm_90"}) {
    v1::BuildTask task;
    task.set_target(v1::CUDA);
    task.set_arch(arch);
    task.set_source(SupportKernelsSource());
    task.add_options("-default-device");
    const BuildOutput output = (*builder)->Build(task);
    ASSERT_EQ(output.result.outcome(), v1::OK) << output.result.log();
    EXPECT_EQ(output.result.log(), "");
    for (const char* kernel : {"fusion_fill", "fusion_widen", "fusion_hash", "fusion_largest",
                               "fusion_squares", "fusion_compare", "fusion_guard", "fusion_inspect"})
      EXPECT_NE(output.binary.find(kernel), std::string::npos) << kernel;
  }
}

TEST(ThrottleReasonNamesTest, NamesWhatSlowsDown) {
  EXPECT_EQ(ThrottleReasonNames(0), "");
  EXPECT_EQ(ThrottleReasonNames(0x1), "");  // idle
  EXPECT_EQ(ThrottleReasonNames(0x4 | 0x40), "software power cap, hardware thermal slowdown");
}

TEST(CudaDriverTest, IsAbsentOrStarts) {
  absl::StatusOr<const CudaDriver*> driver = CudaDriver::Load();
  if (!driver.ok()) {
    EXPECT_NE(driver.status().message(), "");
    GTEST_SKIP() << "SKIP: " << driver.status().message();
  }
  int version = 0;
  EXPECT_EQ((*driver)->DriverGetVersion(&version), 0);
  EXPECT_GE(version, 11000);
  EXPECT_TRUE(absl::IsAborted((*driver)->Check(700, "x")));
  EXPECT_TRUE(absl::IsResourceExhausted((*driver)->Check(2, "x")));
  EXPECT_TRUE(absl::IsInvalidArgument((*driver)->Check(701, "x")));
}

}  // namespace
}  // namespace fusion
