// Spare runners, for any target. Included by the test of the host and by that of a GPU, which instantiate
// RunnerPoolTest with their target.
#pragma once

#include <signal.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <set>

#include "tests/eventually.h"
#include "tests/processes.h"
#include "tests/unit/measure/time_task_fixture.h"
#include "worker/measure/runner_pool.h"

namespace fusion {

class RunnerPoolTest : public TimeTaskTest {
 protected:
  RunnerPoolOptions Options(int spares) {
    RunnerPoolOptions options;
    options.device_uuid = device_.uuid();
    options.spares = spares;
    options.with_device = [this](std::stop_token, const std::function<void()>& use) {
      ++asked_;
      const std::lock_guard device(device_mutex_);
      use();
    };
    if (GetParam() != v1::HOST)
      options.beside_timings = [](std::stop_token, const std::function<void()>& use) { use(); };
    options.changed = [this](int ready) { told_ = ready; };
    return options;
  }
  // Kills it and what it has started; returns when all have ended.
  static void KillAndWait(pid_t process) {
    const std::set<pid_t> children = ChildrenOf(std::to_string(process));
    kill(process, SIGKILL);
    for (pid_t child : children) KillAndWait(child);
    EXPECT_TRUE(Eventually([&] { return HasEnded(process); }));
  }

  std::mutex device_mutex_;
  std::atomic<int> asked_ = 0;  // how often the pool has asked for the device
  std::atomic<int> told_ = -1;
};

TEST_P(RunnerPoolTest, SparesAreMadeBeforeTheyAreNeededAndAgainWhenTaken) {
  RunnerPool pool(Options(2));
  ASSERT_TRUE(Eventually([&] { return pool.ready() == 2; }));
  EXPECT_TRUE(Eventually([&] { return told_ == 2; }));
  const std::unique_ptr<RunnerProcess> spare = pool.Take();
  ASSERT_NE(spare, nullptr);
  EXPECT_TRUE(spare->running());
  EXPECT_TRUE(Eventually([&] { return pool.ready() == 2; }));
}

TEST_P(RunnerPoolTest, ACrashedRunnerIsReplacedByTheSpare) {
  RunnerPool pool(Options(1));
  ASSERT_TRUE(Eventually([&] { return pool.ready() == 1; }));
  int taken = 0;
  runner_.TakeSparesFrom([&] {
    std::unique_ptr<RunnerProcess> spare = pool.Take();
    taken += spare != nullptr;
    return spare;
  });
  AddProgram("good", kAdd);
  AddProgram("bad", "z[i] = x[i]; if (i == 9) *(volatile float*)64 = 1;");
  const std::lock_guard device(device_mutex_);  // while it is held, no other spare gets ready
  TimeSpent spent;
  TimeTaskOptions options;
  options.spent = &spent;
  const absl::StatusOr<v1::TimeResult> result = Execute(options);
  ASSERT_TRUE(result.ok()) << result.status();
  ExpectGood(result->programs(0));
  EXPECT_EQ(result->programs(1).outcome(), v1::FAULT);
  // The first process was the spare; the one after the crash had to be started, since the device was not free
  // for making another.
  EXPECT_EQ(taken, 1);
  EXPECT_EQ(runner_.starts(), 2);
  EXPECT_FALSE(runner_.needs_probe());
  for (const char* part :
       {"start", "probe", "inputs", "reference", "load", "warm_up", "cold", "warm", "verify", "lost"})
    EXPECT_GT(spent[part], 0) << part;
}

TEST_P(RunnerPoolTest, ASpareThatHasDiedIsNotHandedOut) {
  RunnerPool pool(Options(1));
  ASSERT_TRUE(Eventually([&] { return pool.ready() == 1; }));
  std::unique_ptr<RunnerProcess> spare = pool.Take();
  ASSERT_NE(spare, nullptr);
  ASSERT_TRUE(Eventually([&] { return pool.ready() == 1; }));
  {
    const std::lock_guard device(device_mutex_);  // while it is held, no other gets ready
    for (pid_t child : ChildrenOf())
      if (child != spare->pid()) KillAndWait(child);
    EXPECT_EQ(pool.Take(), nullptr);
  }
  EXPECT_TRUE(Eventually([&] { return pool.ready() == 1; }));
  EXPECT_TRUE(spare->Open(device_.uuid(), /*beside_timings=*/false).ok());
}

TEST_P(RunnerPoolTest, NothingIsDoneOnTheDeviceWhileAnotherHasIt) {
  std::unique_lock device(device_mutex_);
  RunnerPool pool(Options(1));
  ASSERT_TRUE(Eventually([&] { return asked_ > 0; }));
  EXPECT_EQ(pool.ready(), 0);
  EXPECT_EQ(pool.Take(), nullptr);
  device.unlock();
  EXPECT_TRUE(Eventually([&] { return pool.ready() == 1; }));
}

TEST_P(RunnerPoolTest, EndingThePoolEndsItsRunners) {
  const std::set<pid_t> before = ChildrenOf();
  auto pool = std::make_unique<RunnerPool>(Options(2));
  ASSERT_TRUE(Eventually([&] { return pool->ready() >= 1; }));
  EXPECT_GT(ChildrenOf().size(), before.size());
  pool.reset();  // one may be in the making
  EXPECT_EQ(ChildrenOf(), before);
}

TEST_P(RunnerPoolTest, APoolThatCannotStartRunnersDoesNoHarm) {
  RunnerPoolOptions options = Options(1);
  options.program = "/no/such/runner";
  RunnerPool pool(options);
  if (!options.beside_timings) {
    ASSERT_TRUE(Eventually([&] { return asked_ > 0; }));
  }
  EXPECT_EQ(pool.Take(), nullptr);
}

}  // namespace fusion
