#include "worker/build/cubin.h"

#include <gtest/gtest.h>

#include "worker/build/nvrtc_builder.h"

namespace fusion {
namespace {

TEST(CubinTest, TellsTheRegistersOfKernels) {
  const auto builder = NvrtcBuilder::Create();
  if (!builder.ok()) GTEST_SKIP() << builder.status();
  v1::BuildTask task;
  task.set_target(v1::CUDA);
  task.set_arch("sm_90");
  task.set_source(
      "extern \"C\" __global__ void few(float* a) { a[threadIdx.x] = 1; }\n"
      "extern \"C\" __global__ void many(float* a, int n) {\n  float x[48];\n#pragma unroll\n"
      "  for (int i = 0; i < 48; ++i) x[i] = a[i * n];\n  __syncthreads();\n#pragma unroll\n"
      "  for (int i = 0; i < 48; ++i) a[i * n + 1] = x[47 - i] * x[i];\n}\n"
      "extern \"C\" __global__ void indexed(float* a, int n) {\n  float x[64];\n"
      "  for (int i = 0; i < n; ++i) x[(i * 7) % 64] = a[i];\n  a[0] = x[n % 64];\n}\n");
  const BuildOutput built = (*builder)->Build(task, {});
  ASSERT_EQ(built.result.outcome(), v1::OK) << built.result.log();
  const auto kernels = ReadCubin(built.binary);
  ASSERT_TRUE(kernels.ok()) << kernels.status();
  ASSERT_EQ(kernels->size(), 3u);
  for (const CubinKernel& kernel : *kernels) {
    EXPECT_LE(kernel.registers, 255);
    if (kernel.name == "few") {
      EXPECT_LT(kernel.registers, 24);
    }
    if (kernel.name == "many") {
      EXPECT_GT(kernel.registers, 40);
    }
    EXPECT_EQ(kernel.stack_bytes >= 256, kernel.name == "indexed") << kernel.name;
  }
  // Whatever is cut off or changed, reading ends.
  for (size_t size = 0; size < built.binary.size(); size += 37)
    if (const auto part = ReadCubin(absl::string_view(built.binary).substr(0, size)); part.ok()) {
      EXPECT_LE(part->size(), 3u);
    }
  std::string broken = built.binary;
  for (size_t i = 0; i < broken.size(); i += 11) {
    const char before = broken[i];
    broken[i] = static_cast<char>(before ^ 0x7f);
    if (const auto read = ReadCubin(broken); read.ok()) {
      EXPECT_FALSE(read->empty());
    }
    broken[i] = before;
  }
}

TEST(CubinTest, OtherBytesAreNone) {
  EXPECT_EQ(ReadCubin("").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReadCubin("\x7f"
                      "ELF and nothing else")
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace fusion
