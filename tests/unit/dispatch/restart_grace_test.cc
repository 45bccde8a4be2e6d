// What is waited for after a restart: workers need some seconds to find the server again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <string>
#include <vector>

#include "tests/unit/dispatch/dispatch_fixture.h"

namespace fusion {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

class RestartGraceTest : public DispatchTest {
 protected:
  void SetUp() override {
    options_.restart_grace = seconds(30);
    DispatchTest::SetUp();
  }
  std::string JobThatMayWait(std::chrono::microseconds limit) {
    JobRecord record;
    record.queue_limit = limit;
    return store_->CreateJob(record, clock_.Now())->job.id;
  }
  using Device = absl::StatusOr<v1::DeviceDescription>;
  Device Choose(const std::string& job, milliseconds patience) {
    return dispatcher_->ChooseDevice(v1::CUDA, "", patience, CancellationToken(), job);
  }
  std::future<Device> Await(const std::string& job) {
    return std::async(std::launch::async, [this, job] { return Choose(job, milliseconds(20)); });
  }
  // A job whose timings are on GPU-1, left by an earlier process; a worker with another device has come back.
  std::string JobOfAnAbsentDevice() {
    const std::string job = NewJob();
    EXPECT_TRUE(dispatcher_->Enqueue(job, {SpecOf(job, Timing("p"), CudaDevice("GPU-1"))}).ok());
    StartServer();
    CallOther();
    return job;
  }
  void CallOther() { Call(Request("other", {}, {CudaDevice("GPU-2")})); }
  void CallFirst() { Call(Request("first", {}, {CudaDevice("GPU-1")})); }
};

TEST_F(RestartGraceTest, TasksMayWaitUntilWorkersHaveComeBack) {
  const std::string job = JobThatMayWait(seconds(3));
  ASSERT_TRUE(dispatcher_->Enqueue(job, {SpecOf(HostBuild("before"))}).ok());
  StartServer();
  BuildFuture built = StartBuild(job, {HostBuild("before"), HostBuild("after")});
  AwaitLiveTasks(2);
  clock_.Advance(seconds(10));
  EXPECT_EQ(built.wait_for(milliseconds(100)), std::future_status::timeout);
  const std::vector<v1::Assignment> work = Take(Request("w"), 2);
  ASSERT_EQ(work.size(), 2u);
  Call(Request("w", {Built(work[0], v1::COMPILE_ERROR), Built(work[1], v1::COMPILE_ERROR)}));
  EXPECT_TRUE(built.get().ok());

  BuildFuture late = StartBuild(job, {HostBuild("late")});
  AwaitLiveTasks(1);
  clock_.Advance(seconds(21));
  const absl::Status status = late.get().status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
}

// By the time that passes, and not by the clock of tasks: 20 ms without a worker.
TEST_F(RestartGraceTest, AJobMayWaitUntilWorkersHaveComeBack) {
  std::promise<milliseconds> told;
  const std::string job = JobThatMayWait(milliseconds(20));
  StartServer();
  dispatcher_->OnWaiting([&](const std::string&, const std::string& what, milliseconds left) {
    if (!what.empty()) told.set_value(left);
  });
  BuildFuture built = StartBuild(job, {HostBuild("k")});
  EXPECT_EQ(told.get_future().get(), seconds(30));
  EXPECT_EQ(built.wait_for(milliseconds(200)), std::future_status::timeout);
  clock_.Advance(seconds(31));
  const absl::Status status = built.get().status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
}

TEST_F(RestartGraceTest, NobodyWaitsLongerWhereNothingWasLeftUnfinished) {
  StartServer();
  EXPECT_EQ(dispatcher_->Patience(milliseconds(20)), milliseconds(20));
  const std::string job = JobThatMayWait(milliseconds(20));
  EXPECT_TRUE(
      absl::IsDeadlineExceeded(dispatcher_->Build(job, {HostBuild("k")}, CancellationToken()).status()));
}

TEST_F(RestartGraceTest, NobodyWaitsLongerForTheOnlyWorkerThatThereWillBe) {
  options_.only_worker_is_here = true;
  NewJob();
  StartServer();
  EXPECT_EQ(dispatcher_->Patience(milliseconds(20)), milliseconds(20));
}

TEST_F(RestartGraceTest, ADeviceIsWaitedForUntilWorkersHaveComeBack) {
  const std::string job = NewJob();
  StartServer();
  EXPECT_EQ(dispatcher_->Patience(milliseconds(20)), seconds(30));
  EXPECT_TRUE(absl::IsUnavailable(Choose(job, milliseconds(0)).status())) << "it only looks";
  std::future<Device> device = Await(job);
  EXPECT_EQ(device.wait_for(milliseconds(200)), std::future_status::timeout);
  CallFirst();
  EXPECT_EQ(device.get()->uuid(), "GPU-1");
}

// On another all its timings would begin anew.
TEST_F(RestartGraceTest, AJobsDeviceMayComeBackLaterThanOthers) {
  const std::string job = JobOfAnAbsentDevice();
  const absl::Status status = Choose(job, milliseconds(0)).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("the job's device, GPU-1, has not come back yet"));
  std::future<Device> device = Await(job);
  EXPECT_EQ(device.wait_for(milliseconds(200)), std::future_status::timeout);
  EXPECT_EQ(Choose(NewJob(), milliseconds(0))->uuid(), "GPU-2") << "another job's";
  CallFirst();
  EXPECT_EQ(device.get()->uuid(), "GPU-1");
}

TEST_F(RestartGraceTest, WhenItsDeviceDoesNotComeBackAJobHasAnother) {
  const std::string job = JobOfAnAbsentDevice();
  // However long it might wait for one.
  auto device = std::async(std::launch::async, [&] { return Choose(job, std::chrono::hours(1)); });
  EXPECT_EQ(device.wait_for(milliseconds(200)), std::future_status::timeout);
  clock_.Advance(seconds(31));
  CallOther();
  EXPECT_EQ(device.get()->uuid(), "GPU-2");
}

TEST_F(RestartGraceTest, ADeviceThatIsKnownToBeGoneIsNotWaitedFor) {
  const std::string job = JobOfAnAbsentDevice();
  CallFirst();
  ASSERT_TRUE(dispatcher_->Drain("first").ok());
  EXPECT_EQ(Choose(job, milliseconds(0))->uuid(), "GPU-2");
}

}  // namespace
}  // namespace fusion
