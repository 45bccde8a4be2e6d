#include "worker/build/nvrtc_builder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "worker/build/compiler_end.h"

namespace fusion {
namespace {

v1::BuildTask CudaTask(const std::string& source, const std::string& arch = "sm_90") {
  v1::BuildTask task;
  task.set_target(v1::CUDA);
  task.set_arch(arch);
  task.set_source(source);
  return task;
}

constexpr char kAdd[] = R"(
extern "C" __global__ void add(const float* x, const float* y, float* z, long long n) {
  for (long long i = blockIdx.x * 1LL * blockDim.x + threadIdx.x; i < n; i += gridDim.x * 1LL * blockDim.x)
    z[i] = x[i] + y[i];
})";

class NvrtcBuilderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<Builder>> builder = NvrtcBuilder::Create();
    if (!builder.ok()) GTEST_SKIP() << "SKIP: " << builder.status().message();
    builder_ = std::move(*builder);
  }
  std::unique_ptr<Builder> builder_;
};

TEST_F(NvrtcBuilderTest, BuildsACubinWithoutAGpu) {
  for (const char* arch : {"sm_80", "sm_90"}) {
    BuildOutput output = builder_->Build(CudaTask(kAdd, arch), {});
    ASSERT_EQ(output.result.outcome(), v1::OK) << output.result.log();
    EXPECT_EQ(output.binary.substr(0, 4),
              "\x7f"
              "ELF");
    EXPECT_NE(output.binary.find("add"), std::string::npos);
    EXPECT_EQ(output.result.binary(), absl::StrCat("sha256:", Sha256Hex(output.binary)));
  }
}

TEST_F(NvrtcBuilderTest, EqualTasksGiveEqualCode) {
  EXPECT_EQ(builder_->Build(CudaTask(kAdd), {}).binary, builder_->Build(CudaTask(kAdd), {}).binary);
}

TEST_F(NvrtcBuilderTest, AnErrorIsAnOutcomeWithTheLog) {
  BuildOutput output = builder_->Build(CudaTask("__global__ void f() { undeclared(); }"), {});
  EXPECT_EQ(output.result.outcome(), v1::COMPILE_ERROR);
  EXPECT_NE(output.result.log().find("undeclared"), std::string::npos) << output.result.log();
}

TEST_F(NvrtcBuilderTest, AnArchThatItCannotBuildForIsNamed) {
  for (const char* arch : {"sm_11", "sm_", "sm_-90", "gfx90a", ""}) {
    BuildOutput output = builder_->Build(CudaTask(kAdd, arch), {});
    EXPECT_EQ(output.result.outcome(), v1::COMPILE_ERROR);
    EXPECT_NE(output.result.log().find(arch), std::string::npos) << output.result.log();
  }
}

TEST_F(NvrtcBuilderTest, AnUnknownArchIsTheNearestOlderOneWithAWarning) {
  const Nvrtc& nvrtc = **Nvrtc::Load();
  int count = 0;
  ASSERT_EQ(nvrtc.GetNumSupportedArchs(&count), Nvrtc::kSuccess);
  std::vector<int> archs(count);
  ASSERT_EQ(nvrtc.GetSupportedArchs(archs.data()), Nvrtc::kSuccess);
  const int newest = *std::max_element(archs.begin(), archs.end());

  // Of the same major version: its cubin runs on the later device.
  ASSERT_EQ(std::count(archs.begin(), archs.end(), 91), 0);
  BuildOutput hopper = builder_->Build(CudaTask(kAdd, "sm_91"), {});
  ASSERT_EQ(hopper.result.outcome(), v1::OK) << hopper.result.log();
  EXPECT_EQ(hopper.binary, builder_->Build(CudaTask(kAdd, "sm_90"), {}).binary);
  EXPECT_EQ(hopper.result.log().rfind("warning: ", 0), 0u) << hopper.result.log();
  EXPECT_NE(hopper.result.log().find("sm_91"), std::string::npos) << hopper.result.log();
  EXPECT_NE(hopper.result.log().find("built for sm_90"), std::string::npos) << hopper.result.log();

  // Of a later one: PTX, which the driver translates.
  BuildOutput later = builder_->Build(CudaTask(kAdd, absl::StrCat("sm_", newest / 10 * 10 + 10)), {});
  ASSERT_EQ(later.result.outcome(), v1::OK) << later.result.log();
  EXPECT_NE(later.binary.find(absl::StrCat(".target sm_", newest, "\n")), std::string::npos);
  EXPECT_NE(later.binary.find(".entry add("), std::string::npos);
  EXPECT_EQ(later.binary.back(), '\0');
  EXPECT_NE(later.result.log().find(absl::StrCat("built PTX for compute_", newest)), std::string::npos)
      << later.result.log();
  EXPECT_EQ(builder_->Build(CudaTask(kAdd, "sm_90"), {}).result.log(), "");
}

TEST_F(NvrtcBuilderTest, PassesTheOptionsOfTheTask) {
  v1::BuildTask task =
      CudaTask("#if ANSWER != 42\n#error wrong\n#endif\nextern \"C\" __global__ void f() {}");
  EXPECT_EQ(builder_->Build(task, {}).result.outcome(), v1::COMPILE_ERROR);
  task.add_options("-DANSWER=42");
  EXPECT_EQ(builder_->Build(task, {}).result.outcome(), v1::OK);
}

// As NVRTC says it at the limit of a build, and where the machine has less: whose fault it is, others decide,
// by these words.
TEST_F(NvrtcBuilderTest, WantOfMemoryIsSaidInWords) {
  Nvrtc without = **Nvrtc::Load();
  without.CompileProgram = [](Nvrtc::Program, int, const char* const*) -> int {
    return Nvrtc::kErrorOutOfMemory;
  };
  const BuildOutput output = NvrtcBuilder(&without).Build(CudaTask(kAdd), {});
  EXPECT_EQ(output.result.outcome(), v1::COMPILE_ERROR);
  EXPECT_TRUE(SaysOutOfMemory(output.result.log())) << output.result.log();
  EXPECT_TRUE(output.binary.empty());
}

TEST_F(NvrtcBuilderTest, WantOfMemoryIsSaidBesideWhatTheSourceIsWarnedOf) {
  static int (*compile)(Nvrtc::Program, int, const char* const*) = (*Nvrtc::Load())->CompileProgram;
  Nvrtc without = **Nvrtc::Load();
  without.CompileProgram = [](Nvrtc::Program program, int count, const char* const* options) -> int {
    compile(program, count, options);
    return Nvrtc::kErrorOutOfMemory;
  };
  const BuildOutput output =
      NvrtcBuilder(&without).Build(CudaTask("__global__ void f() { int unused; }"), {});
  EXPECT_EQ(output.result.outcome(), v1::COMPILE_ERROR);
  EXPECT_TRUE(SaysOutOfMemory(output.result.log())) << output.result.log();
  EXPECT_NE(output.result.log().find("unused"), std::string::npos) << output.result.log();
}

TEST_F(NvrtcBuilderTest, APassedDeadlineAndAStopAreTimeouts) {
  v1::BuildTask task = CudaTask(kAdd);
  task.set_deadline_seconds(1e-9);
  BuildOutput late = builder_->Build(task, {});
  EXPECT_EQ(late.result.outcome(), v1::TIMEOUT);
  EXPECT_TRUE(late.binary.empty());
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(builder_->Build(CudaTask(kAdd), stop.get_token()).result.outcome(), v1::TIMEOUT);
}

TEST_F(NvrtcBuilderTest, SeveralThreadsMayBuild) {
  std::vector<v1::Outcome> outcomes(4);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      outcomes[i] = builder_->Build(CudaTask(absl::StrCat(kAdd, "\n// ", i)), {}).result.outcome();
    });
  for (std::thread& thread : threads) thread.join();
  for (v1::Outcome outcome : outcomes) EXPECT_EQ(outcome, v1::OK);
}

}  // namespace
}  // namespace fusion
