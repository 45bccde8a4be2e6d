#include "server/dispatch/task_queue.h"

#include <gmock/gmock.h>

#include "tests/unit/dispatch/dispatch_fixture.h"

namespace fusion {
namespace {

v1::SynchronizeRequest WithDevices(const std::vector<v1::DeviceDescription>& devices) {
  v1::SynchronizeRequest request;
  for (const v1::DeviceDescription& device : devices) *request.add_devices() = device;
  return request;
}

TEST(TaskQueueTest, CudaBuildsNeedNoParticularDevice) {
  const v1::SynchronizeRequest request = WithDevices({CudaDevice("G1"), CudaDevice("G2", "sm_80"), HostDevice()});
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

}  // namespace
}  // namespace fusion
