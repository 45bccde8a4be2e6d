#include "server/dispatch/task_queue.h"

#include <gmock/gmock.h>

#include <set>
#include <string>

#include "tests/unit/dispatch/dispatch_fixture.h"

namespace fusion {
namespace {

v1::SynchronizeRequest WithDevices(const std::vector<v1::DeviceDescription>& devices) {
  v1::SynchronizeRequest request;
  for (const v1::DeviceDescription& device : devices) *request.add_devices() = device;
  return request;
}

TEST(TaskQueueTest, CudaBuildsNeedNoParticularDevice) {
  const v1::SynchronizeRequest request =
      WithDevices({CudaDevice("G1"), CudaDevice("G2", "sm_80"), HostDevice()});
  const std::vector<Capability> build = BuildCapabilities(request);
  ASSERT_EQ(build.size(), 2u);
  EXPECT_TRUE(Matches(build[0], {"CUDA", "sm_70", ""}));
  EXPECT_TRUE(Matches(build[1], {"HOST", "x86-64-v4", ""}));
  EXPECT_FALSE(Matches(build[1], {"HOST", "x86-64-v3", ""}));
  EXPECT_EQ(TimeCapabilities(request).size(), 3u);
}

TEST(TaskQueueTest, AWorkerWithoutDevicesBuildsWhatItSays) {
  v1::SynchronizeRequest request;
  EXPECT_TRUE(BuildCapabilities(request).empty());
  request.add_builds()->set_target(v1::CUDA);
  v1::BuildCapability* host = request.add_builds();
  host->set_target(v1::HOST);
  host->set_arch("x86-64-v4");
  const std::vector<Capability> build = BuildCapabilities(request);
  ASSERT_EQ(build.size(), 2u);
  EXPECT_TRUE(Matches(build[0], {"CUDA", "sm_120", ""}));
  EXPECT_FALSE(Matches(build[1], {"HOST", "aarch64", ""}));
  EXPECT_TRUE(TimeCapabilities(request).empty());
}

TEST(TaskQueueTest, OnlySoundDevicesWithIdleLanesAreOffered) {
  v1::SynchronizeRequest request = WithDevices({CudaDevice("G1"), CudaDevice("G2"), CudaDevice("G3")});
  request.add_problems()->set_device_uuid("G1");
  EXPECT_EQ(TimeCapabilities(request).size(), 2u);
  request.add_free_devices("G1");
  request.add_free_devices("G3");
  const std::vector<Capability> time = TimeCapabilities(request);
  ASSERT_EQ(time.size(), 1u);
  EXPECT_EQ(time[0].device_uuid, "G3");
}

TEST(TaskQueueTest, ResultsOfFailedTasksSayWhy) {
  TaskRecord task;
  task.state = TaskState::kFailed;
  task.failure_message = "why";
  task.payload = Timing("p").SerializeAsString();
  EXPECT_EQ(BuildResultOf(task)->outcome(), v1::WORKER_LOST);
  EXPECT_EQ(BuildResultOf(task)->log(), "why");
  EXPECT_EQ(TimeResultOf(task)->failure(), "why");
  EXPECT_EQ(TimeResultOf(task)->unfused().name(), "unfused");
  EXPECT_EQ(TimeResultOf(task)->programs(0).message(), "why");
}

TEST(TaskQueueTest, DamagedResultsAreAnError) {
  TaskRecord task;
  task.state = TaskState::kDone;
  task.result = "\xff\xff\xff";
  EXPECT_TRUE(absl::IsDataLoss(BuildResultOf(task).status()));
  EXPECT_TRUE(absl::IsDataLoss(TimeResultOf(task).status()));
}

class TaskQueueUsersTest : public DispatchTest {
 protected:
  // Queues builds "<user>0", "<user>1" ... of a new job of the user.
  std::string Queue(const std::string& user, int builds) {
    const std::string job = store_->CreateJob(JobRecord{.user = user}, clock_.Now())->job.id;
    std::vector<TaskSpec> specs;
    for (int i = 0; i < builds; ++i) specs.push_back(SpecOf(HostBuild(user + std::to_string(i))));
    EXPECT_TRUE(dispatcher_->Enqueue(job, specs).ok());
    return job;
  }
};

TEST_F(TaskQueueUsersTest, WhatWorkersFailedAtSaysNothingOfHowLongTasksTake) {
  const std::string unlucky = Queue("unlucky", 40);
  v1::SynchronizeRequest broken = Request("broken");
  broken.set_free_build_slots(40);
  std::vector<v1::TaskReport> failures;
  for (const v1::Assignment& work : Take(broken, 40)) failures.push_back(Failed(work, "no space left"));
  Call(Request("broken", failures));
  ASSERT_TRUE(dispatcher_->CancelJob(unlucky).ok());

  // Ada has had two seconds of the farm. Tasks count as one second while they run, so Ben is given two, and
  // then both by turns.
  Queue("ada", 8);
  v1::SynchronizeRequest request = Request("w");
  request.set_free_build_slots(1);
  const std::vector<v1::Assignment> first = Take(request, 1);
  Queue("ben", 8);
  clock_.Advance(std::chrono::seconds(2));
  request.set_free_build_slots(0);
  *request.add_tasks() = Built(first[0], v1::COMPILE_ERROR);
  Call(request);
  int of_ada = 0;
  for (const v1::Assignment& work : Take(Request("w"), 8))
    of_ada += work.build().key().starts_with("ada") ? 1 : 0;
  EXPECT_EQ(of_ada, 3) << "of 8";
}

using TaskQueueRestartTest = DispatchTest;

// As a client without a server, which is there for what it was asked for alone.
TEST_F(TaskQueueRestartTest, WithoutResumingTasksWaitUntilTheirJobAsksForThemAgain) {
  const std::string left = NewJob();
  BuildFuture built = StartBuild(left, {HostBuild("held"), HostBuild("queued")});
  v1::SynchronizeRequest request = Request("w");
  request.set_free_build_slots(1);
  ASSERT_EQ(Take(request, 1).size(), 1u);
  dispatcher_->Stop();
  built.get().IgnoreError();

  options_.resume_tasks = false;
  StartServer();
  BuildFuture mine = StartBuild(NewJob(), {HostBuild("mine")});
  request = Request("w");
  request.set_instance("w process 2");
  const std::vector<v1::Assignment> work = Take(request, 1);
  EXPECT_EQ(work[0].build().key(), "mine");
  *request.add_tasks() = Built(work[0], v1::COMPILE_ERROR);
  EXPECT_EQ(Call(request).assignments_size(), 0) << "what another process left there";
  EXPECT_TRUE(mine.get().ok());
  request.clear_tasks();

  built = StartBuild(left, {HostBuild("held"), HostBuild("queued")});
  const std::vector<v1::Assignment> again = Take(request, 2);
  std::set<std::string> keys;
  for (const v1::Assignment& assignment : again) {
    keys.insert(assignment.build().key());
    *request.add_tasks() = Built(assignment, v1::COMPILE_ERROR);
  }
  EXPECT_THAT(keys, ::testing::ElementsAre("held", "queued"));
  Call(request);
  EXPECT_TRUE(built.get().ok());
}

}  // namespace
}  // namespace fusion
