// A machine with several GPUs: a runner has that of its lane, and what happens on one is nothing to another.
// Skipped where there are fewer than two.
#include <fcntl.h>
#include <glob.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>
#include <vector>

#include "base/sandbox/confine.h"
#include "base/sandbox/machine_offer.h"
#include "base/sandbox/spawn.h"
#include "tests/fault/long_form.h"
#include "tests/unit/measure/time_task_fixture.h"
#include "worker/measure/statistics.h"

namespace fusion {
namespace {

class TwoGpusTest : public TimeTaskTest {
 protected:
  void SetUp() override {
    TimeTaskTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const v1::DescribeReply described = Described().value();
    for (const v1::DeviceDescription& device : described.devices()) uuids_.push_back(device.uuid());
    if (uuids_.size() < 2) GTEST_SKIP() << "SKIP: one GPU on this machine, where two are needed";
  }
  // As a worker confines the runner of a lane.
  static SandboxPolicy PolicyOf(const std::string& uuid) {
    SandboxPolicy policy;
    policy.kind = SandboxKind::kDeviceCode;
    policy.device_uuid = uuid;
    return policy;
  }
  static std::vector<std::string> GpuNodes() {
    std::vector<std::string> nodes;
    glob_t found{};
    if (glob("/dev/nvidia[0-9]*", 0, nullptr, &found) == 0)
      nodes.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
    globfree(&found);
    return nodes;
  }
  static int CountOpened(const std::vector<std::string>& nodes) {
    int opened = 0;
    for (const std::string& node : nodes)
      if (const int file = open(node.c_str(), O_RDWR | O_CLOEXEC); file >= 0) {
        ++opened;
        close(file);
      }
    return opened;
  }
  std::vector<std::string> uuids_;
};

TEST_P(TwoGpusTest, ARunnerHasTheGpuOfItsLaneAlone) {
  for (const std::string& uuid : uuids_) {
    RunnerProcess runner("", PolicyOf(uuid));
    absl::StatusOr<v1::DescribeReply> outline = runner.Outline();
    ASSERT_TRUE(outline.ok()) << outline.status();
    ASSERT_EQ(outline->devices_size(), 1);
    EXPECT_EQ(outline->devices(0).uuid(), uuid);
    for (const std::string& other : uuids_) EXPECT_EQ(runner.Probe(other).ok(), other == uuid) << other;
  }
}

TEST_P(TwoGpusTest, NodesOfOtherGpusCannotBeOpened) {
  const std::vector<std::string> nodes = GpuNodes();
  ASSERT_GE(CountOpened(nodes), 2) << "the control: nothing confines this process";
  const MachineOffer& offer = MachineOffer::Get();
  if (offer.landlock == 0 && offer.bubblewrap.empty())
    GTEST_SKIP() << "SKIP: nothing here hides files: " << offer.bubblewrap_missing;
  for (const std::string& uuid : uuids_) {
    SandboxPolicy policy = PolicyOf(uuid);
    if (offer.landlock > 0) {
      policy.use_bubblewrap = false;
      const pid_t child = fork();
      if (child == 0) _exit(ConfineThisProcess(policy, "/proc/self/exe").ok() ? CountOpened(nodes) : 100);
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      ASSERT_TRUE(WIFEXITED(status)) << status;
      EXPECT_EQ(WEXITSTATUS(status), 1) << "with Landlock, " << uuid;
    }
    if (!offer.bubblewrap.empty()) {
      policy.use_bubblewrap = true;
      SpawnRequest request;
      request.command = {"/bin/sh", "-c",
                         "n=0; for node in /dev/nvidia[0-9]*; do (: <>$node) && n=$((n+1)); done; exit $n"};
      request.environment = {"PATH=/usr/bin:/bin"};
      request.directory = "/";
      request.policy = policy;
      absl::StatusOr<pid_t> child = Spawn(request);
      ASSERT_TRUE(child.ok()) << child.status();
      int status = 0;
      ASSERT_EQ(waitpid(*child, &status, 0), *child);
      ASSERT_TRUE(WIFEXITED(status)) << status;
      EXPECT_EQ(WEXITSTATUS(status), 1) << "in bubblewrap, " << uuid;
    }
  }
}

TEST_P(TwoGpusTest, WhatCrashesOnOneIsNothingToAnother) {
  AddProgram("good", kAdd);
  const v1::TimeTask task = task_;
  RunnerProcess own("", PolicyOf(uuids_[0]));
  std::vector<double> times_alone, times_beside;
  const auto measure = [&](std::vector<double>* times) {
    absl::StatusOr<v1::TimeResult> result = ExecuteBy(&own, task);
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_EQ(result->failure(), "");
    ASSERT_EQ(result->programs_size(), 1);
    ExpectGood(result->programs(0));
    times->push_back(result->programs(0).warm().median());
  };
  for (int i = 0; i < Count(5, 50); ++i) ASSERT_NO_FATAL_FAILURE(measure(&times_alone));

  v1::TimeTask crashing = task_;
  crashing.set_device_uuid(uuids_[1]);
  *crashing.add_programs() = Kernel("wild", "float", "z[i] = x[i]; if (i == 9) *(volatile float*)64 = 1;");
  *crashing.add_programs() =
      Kernel("endless", "float", "z[i] = x[i]; for (volatile float* p = z + i; i == 9;) p[0] = 1;");
  crashing.mutable_method()->set_run_deadline_seconds(1);
  std::atomic<bool> ended = false;
  std::vector<absl::StatusOr<v1::TimeResult>> crashed;
  std::thread other([&] {
    RunnerProcess runner("", PolicyOf(uuids_[1]));
    for (int i = 0; i < Count(2, 10); ++i) crashed.push_back(ExecuteBy(&runner, crashing));
    ended = true;
  });
  while (!ended && !HasFatalFailure()) measure(&times_beside);
  other.join();
  for (const absl::StatusOr<v1::TimeResult>& result : crashed) {
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_EQ(result->programs_size(), 3);
    ExpectGood(result->programs(0));
    EXPECT_EQ(result->programs(1).outcome(), v1::FAULT) << result->programs(1).message();
    EXPECT_EQ(result->programs(2).outcome(), v1::TIMEOUT) << result->programs(2).message();
  }
  EXPECT_GE(times_beside.size(), 3u);
  EXPECT_EQ(own.starts(), 1) << "the runner of the first GPU was ended";
  const double usual = ComputeStatistics(times_alone).median();
  double most_alone = 0, most_beside = 0;
  for (double time : times_alone) most_alone = std::max(most_alone, std::abs(time / usual - 1));
  for (double time : times_beside) most_beside = std::max(most_beside, std::abs(time / usual - 1));
  TellFigure("tasks beside crashes on another GPU", static_cast<double>(times_beside.size()));
  TellFigure("their times differ, percent", 100 * most_beside);
  TellFigure("and without the crashes, percent", 100 * most_alone);
}

INSTANTIATE_TEST_SUITE_P(Cuda, TwoGpusTest, ::testing::Values(v1::CUDA));

}  // namespace
}  // namespace fusion
