// TimeTasks on the host.
#include <gmock/gmock.h>
#include <signal.h>

#include <string>

#include "absl/strings/numbers.h"
#include "tests/processes.h"
#include "tests/unit/measure/time_task_scenarios.h"

namespace fusion {

INSTANTIATE_TEST_SUITE_P(Host, TimeTaskTest, ::testing::Values(v1::HOST));

TEST(DescribeTest, TheHostIsAlwaysADevice) {
  RunnerProcess runner;
  absl::StatusOr<v1::DescribeReply> reply = runner.Describe(v1::HOST);
  ASSERT_TRUE(reply.ok()) << reply.status();
  ASSERT_EQ(reply->devices_size(), 1);
  const v1::DeviceDescription& device = reply->devices(0);
  EXPECT_EQ(device.target(), v1::HOST);
  EXPECT_EQ(device.arch(), HostArch());
  EXPECT_NE(device.name(), "");
  EXPECT_EQ(device.uuid().substr(0, 5), "host-");
  EXPECT_GE(device.multiprocessors(), 1);
  EXPECT_GT(device.memory_bytes(), int64_t{1} << 28);
  EXPECT_GT(device.copy_bytes_per_second(), 1e8);
  EXPECT_LT(device.copy_bytes_per_second(), 1e13);
  EXPECT_GT(device.peak_flops(), 1e8);
  EXPECT_GT(device.launch_seconds(), 0);
  EXPECT_TRUE(runner.Probe(device.uuid()).ok());
}

TEST(RunnerProcessTest, AMissingProgramIsAClearError) {
  RunnerProcess runner("/no/such/runner");
  absl::StatusOr<v1::DescribeReply> reply = runner.Describe(v1::HOST);
  EXPECT_EQ(reply.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(reply.status().message().find("FUSION_RUNNER"), std::string::npos);
}

TEST(RunnerProcessTest, AnUnknownDeviceIsAFailureNotADeath) {
  RunnerProcess runner;
  EXPECT_EQ(runner.Probe("GPU-00000000").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(runner.running());
}

TEST(RunnerProcessTest, AProgramThatIsNoRunnerIsNoticed) {
  RunnerProcess runner("/bin/false");
  EXPECT_EQ(runner.Describe(v1::HOST).status().code(), absl::StatusCode::kAborted);
}

TEST(IsolatedBuilderTest, BuildsAndEndsACompilationThatNeverWould) {
  absl::StatusOr<std::unique_ptr<Builder>> builder = IsolatedBuilder::Create(v1::CUDA);
  if (!builder.ok()) GTEST_SKIP() << "SKIP: " << builder.status().message();
  EXPECT_NE((*builder)->CompilerVersion(), "");
  v1::BuildTask task;
  task.set_target(v1::CUDA);
  task.set_arch("sm_90");
  task.set_source("extern \"C\" __global__ void f() {}");
  BuildOutput good = (*builder)->Build(task);
  EXPECT_EQ(good.result.outcome(), v1::OK) << good.result.log();
  EXPECT_FALSE(good.binary.empty());
  v1::BuildTask endless = task;
  endless.set_source(R"(
template <int N, long long P> struct Tree {
  static constexpr long long value = Tree<N - 1, 2 * P>::value + Tree<N - 1, 2 * P + 1>::value;
};
template <long long P> struct Tree<0, P> { static constexpr long long value = P; };
extern "C" __global__ void f(long long* x) { *x = Tree<30, 1>::value; })");
  endless.set_deadline_seconds(0.2);
  EXPECT_EQ((*builder)->Build(endless).result.outcome(), v1::TIMEOUT);
  EXPECT_EQ((*builder)->Build(task).binary, good.binary);
}

namespace {

v1::BuildTask EmptyKernel() {
  v1::BuildTask task;
  task.set_target(v1::CUDA);
  task.set_arch("sm_90");
  task.set_source("extern \"C\" __global__ void f() {}");
  return task;
}

}  // namespace

TEST(IsolatedBuilderTest, WithoutARunnerThatLivesThereIsNoOutcome) {
  for (const char* program : {"/no/such/runner", "/bin/false"}) {
    absl::StatusOr<std::unique_ptr<Builder>> builder = IsolatedBuilder::Create(v1::CUDA, program);
    if (!builder.ok()) GTEST_SKIP() << "SKIP: " << builder.status().message();
    const BuildOutput output = (*builder)->Build(EmptyKernel());
    EXPECT_FALSE(output.has_outcome()) << program << ": " << v1::Outcome_Name(output.result.outcome());
    EXPECT_THAT(output.result.log(), ::testing::HasSubstr("the compiler failed: "));
  }
}

TEST(IsolatedBuilderTest, ARunnerThatWasKilledWhileItWaitedIsReplaced) {
  const std::set<pid_t> others = ChildrenOf();
  absl::StatusOr<std::unique_ptr<Builder>> builder = IsolatedBuilder::Create(v1::CUDA);
  if (!builder.ok()) GTEST_SKIP() << "SKIP: " << builder.status().message();
  ASSERT_EQ((*builder)->Build(EmptyKernel()).result.outcome(), v1::OK);
  int killed = 0;
  for (const pid_t process : ChildrenOf()) {
    if (others.contains(process)) continue;
    ++killed;
    kill(process, SIGKILL);
    EXPECT_TRUE(Eventually([&] { return HasEnded(process); }));
  }
  EXPECT_EQ(killed, 1);
  const BuildOutput output = (*builder)->Build(EmptyKernel());
  EXPECT_EQ(output.result.outcome(), v1::OK) << output.result.log();
}

}  // namespace fusion
