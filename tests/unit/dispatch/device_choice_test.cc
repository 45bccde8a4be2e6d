// Which device a job gets, and how long it waits for one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "server/dispatch/dispatcher.h"
#include "tests/unit/dispatch/dispatch_fixture.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

using DeviceChoiceTest = DispatchTest;

TEST_F(DeviceChoiceTest, AKindIsAskedForByItsNameOrAPartOfIt) {
  const auto none = std::chrono::milliseconds(0);
  CancellationToken token;
  EXPECT_EQ(*dispatcher_->FindKind(v1::CUDA, "H200"), "H200") << "no kind has been seen yet";
  Call(Request("a", {}, {HostDevice(), CudaDevice("GPU-A100", "sm_80"), CudaDevice("GPU-1")}));
  const std::string fast = dispatcher_->ChooseDevice(v1::CUDA, "", none, token)->name();
  ASSERT_NE(fast, "A100");
  EXPECT_EQ(*dispatcher_->FindKind(v1::TARGET_AUTO, "a100"), "A100");
  EXPECT_EQ(*dispatcher_->FindKind(v1::TARGET_AUTO, "A10"), "A100");
  EXPECT_EQ(dispatcher_->ChooseDevice(v1::TARGET_AUTO, "", none, token, "", "", "A100")->uuid(), "GPU-A100");
  EXPECT_TRUE(dispatcher_->FindDevice(v1::CUDA, "sm_80", "", "A100").ok());
  const absl::Status missing = dispatcher_->FindDevice(v1::CUDA, "sm_90", "", "A100");
  EXPECT_TRUE(absl::IsUnavailable(missing));
  EXPECT_THAT(std::string(missing.message()), HasSubstr("a cuda device of arch sm_90 called A100"));

  const absl::Status unknown = dispatcher_->FindKind(v1::CUDA, "V100").status();
  EXPECT_TRUE(absl::IsInvalidArgument(unknown)) << unknown;
  EXPECT_THAT(std::string(unknown.message()),
              HasSubstr("no cuda device of the farm is called V100; there are: "));
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("A100"));
  EXPECT_THAT(std::string(unknown.message()), HasSubstr(fast));
  EXPECT_TRUE(absl::IsInvalidArgument(dispatcher_->FindKind(v1::HOST, "A100").status())) << "no host is";
  v1::DeviceDescription other = CudaDevice("GPU-40", "sm_80");
  other.set_name("A100 40 GB");
  Call(Request("b", {}, {other}));
  EXPECT_EQ(*dispatcher_->FindKind(v1::CUDA, "A100"), "A100") << "its very name";
  // Chosen by it too, though the other holds it and is faster.
  other.set_copy_bytes_per_second(3e12);
  Call(Request("b", {}, {other}));
  EXPECT_EQ(dispatcher_->ChooseDevice(v1::CUDA, "", none, token, "", "", "A100")->uuid(), "GPU-A100");
  const absl::Status both = dispatcher_->FindKind(v1::CUDA, "A1").status();
  EXPECT_THAT(std::string(both.message()), HasSubstr("A1 may be A100 or A100 40 GB"));
}

TEST_F(DeviceChoiceTest, ChoosesTheFastestDeviceAndTakesTurnsAmongEquals) {
  const auto none = std::chrono::milliseconds(0);
  CancellationToken token;
  EXPECT_TRUE(absl::IsUnavailable(dispatcher_->ChooseDevice(v1::TARGET_AUTO, "", none, token).status()));
  Call(Request("a", {}, {HostDevice()}));
  EXPECT_EQ(dispatcher_->ChooseDevice(v1::TARGET_AUTO, "", none, token)->uuid(), "CPU-1");
  Call(Request("b", {}, {CudaDevice("GPU-A100", "sm_80")}));
  EXPECT_EQ(dispatcher_->ChooseDevice(v1::TARGET_AUTO, "", none, token)->uuid(), "GPU-A100");
  Call(Request("c", {}, {CudaDevice("GPU-2"), CudaDevice("GPU-1")}));
  EXPECT_EQ(dispatcher_->ChooseDevice(v1::TARGET_AUTO, "", none, token)->uuid(), "GPU-1");
  EXPECT_EQ(dispatcher_->ChooseDevice(v1::CUDA, "", none, token)->uuid(), "GPU-2");
  EXPECT_EQ(dispatcher_->ChooseDevice(v1::CUDA, "sm_90", none, token)->uuid(), "GPU-1");
  EXPECT_EQ(dispatcher_->ChooseDevice(v1::CUDA, "sm_80", none, token)->uuid(), "GPU-A100");
  EXPECT_EQ(dispatcher_->ChooseDevice(v1::HOST, "", none, token)->uuid(), "CPU-1");
  const absl::Status missing = dispatcher_->ChooseDevice(v1::CUDA, "sm_70", none, token).status();
  EXPECT_TRUE(absl::IsUnavailable(missing));
  EXPECT_THAT(std::string(missing.message()),
              HasSubstr("no worker with a cuda device of arch sm_70 is connected"));
  EXPECT_THAT(std::string(missing.message()), HasSubstr("b (cuda sm_80 A100)"));
}

class LeastUsedDeviceTest : public DispatchTest {
 protected:
  // The device of a new job.
  std::string Choose(std::string* job = nullptr, const std::string& user = "") {
    const std::string name = store_->CreateJob(JobRecord{.user = user}, clock_.Now())->job.id;
    if (job != nullptr) *job = name;
    const absl::StatusOr<v1::DeviceDescription> device =
        dispatcher_->ChooseDevice(v1::CUDA, "", std::chrono::milliseconds(0), CancellationToken(), name);
    EXPECT_TRUE(device.ok()) << device.status();
    return device.ok() ? device->uuid() : "";
  }
};

TEST_F(LeastUsedDeviceTest, ADeviceThatComesLateDoesNotGetAllJobs) {
  Call(Request("a", {}, {CudaDevice("GPU-1")}));
  for (int i = 0; i < 6; ++i) {
    std::string job;
    EXPECT_EQ(Choose(&job), "GPU-1");
    dispatcher_->JobEnded(job);
  }
  Call(Request("b", {}, {CudaDevice("GPU-2")}));
  std::map<std::string, int> jobs;
  for (int i = 0; i < 6; ++i) ++jobs[Choose()];
  EXPECT_THAT(jobs, ElementsAre(Pair("GPU-1", 3), Pair("GPU-2", 3)));
}

TEST_F(LeastUsedDeviceTest, TheNextJobGetsTheDeviceThatTheFewestHave) {
  Call(Request("a", {}, {CudaDevice("GPU-1")}));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Choose(), "GPU-1");
  Call(Request("b", {}, {CudaDevice("GPU-2")}));
  std::string job;
  EXPECT_EQ(Choose(), "GPU-2");
  EXPECT_EQ(Choose(&job), "GPU-2");
  EXPECT_EQ(Choose(), "GPU-1") << "of equals the one that was chosen longest ago";
  EXPECT_EQ(Choose(), "GPU-2");
  dispatcher_->JobEnded(job);
  EXPECT_EQ(Choose(), "GPU-2") << "it has two, the other three";
  EXPECT_EQ(Choose(), "GPU-1") << "both have three";
}

TEST_F(LeastUsedDeviceTest, TheManyJobsOfOneUserCountAsHisShare) {
  Call(Request("w", {}, {CudaDevice("GPU-1"), CudaDevice("GPU-2")}));
  std::string last;
  for (int i = 0; i < 10; ++i) Choose(&last, "hog");
  EXPECT_EQ(Choose(nullptr, "ben"), "GPU-1");
  dispatcher_->JobEnded(last);  // of GPU-2
  dispatcher_->JobEnded(last);  // which changes nothing more
  EXPECT_EQ(Choose(nullptr, "cat"), "GPU-2");
}

// As one that goes on after a restart of the server.
TEST_F(LeastUsedDeviceTest, AJobThatHasItsDeviceFromBeforeCounts) {
  Call(Request("w", {}, {CudaDevice("GPU-1"), CudaDevice("GPU-2")}));
  for (int i = 0; i < 2; ++i) {
    const std::string job = NewJob();
    ASSERT_TRUE(store_->EnsureTasks(job, {SpecOf(job, Timing("p"), CudaDevice("GPU-1"))}, clock_.Now()).ok());
    for (int times = 0; times < 3; ++times)
      EXPECT_EQ(
          dispatcher_->ChooseDevice(v1::CUDA, "", std::chrono::milliseconds(0), CancellationToken(), job)
              ->uuid(),
          "GPU-1");
  }
  for (const char* device : {"GPU-2", "GPU-2", "GPU-1", "GPU-2"}) EXPECT_EQ(Choose(), device);
}

TEST_F(DeviceChoiceTest, TheNearestArchitectureServesUntilTheOneAskedForIsConnected) {
  const auto none = std::chrono::milliseconds(0);
  CancellationToken token;
  const absl::Status missing =
      dispatcher_->ChooseDevice(v1::CUDA, "sm_87", none, token, "", "sm_86").status();
  EXPECT_TRUE(absl::IsUnavailable(missing));
  EXPECT_THAT(std::string(missing.message()), HasSubstr("of arch sm_87 or sm_86 is connected"));
  Call(Request("a", {}, {CudaDevice("GPU-90", "sm_90")}));
  EXPECT_FALSE(dispatcher_->ChooseDevice(v1::CUDA, "sm_87", none, token, "", "sm_86").ok());
  Call(Request("b", {}, {CudaDevice("GPU-86", "sm_86")}));
  EXPECT_EQ(dispatcher_->ChooseDevice(v1::CUDA, "sm_87", none, token, "", "sm_86")->uuid(), "GPU-86");
  Call(Request("c", {}, {CudaDevice("GPU-87", "sm_87")}));
  EXPECT_EQ(dispatcher_->ChooseDevice(v1::CUDA, "sm_87", none, token, "", "sm_86")->uuid(), "GPU-87");
}

TEST_F(DeviceChoiceTest, WaitsForADeviceToConnect) {
  auto chosen = std::async(std::launch::async, [&] {
    return dispatcher_->ChooseDevice(v1::CUDA, "", std::chrono::seconds(60), CancellationToken());
  });
  Call(Request("host only"));
  Call(Request("w", {}, {CudaDevice()}));
  absl::StatusOr<v1::DeviceDescription> device = chosen.get();
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_EQ(device->uuid(), "GPU-1");
}

TEST_F(DeviceChoiceTest, WaitingForADeviceCanBeCancelledOrStopped) {
  CancellationToken token;
  const auto wait = [&](CancellationToken t) {
    return dispatcher_->ChooseDevice(v1::CUDA, "", std::chrono::seconds(60), t).status();
  };
  auto cancelled = std::async(std::launch::async, wait, token);
  auto stopped = std::async(std::launch::async, wait, CancellationToken());
  token.Cancel();
  EXPECT_TRUE(absl::IsCancelled(cancelled.get()));
  dispatcher_->Stop();
  EXPECT_TRUE(absl::IsUnavailable(stopped.get()));
}

TEST_F(DeviceChoiceTest, AJobKeepsItsDevice) {
  const std::string job = NewJob();
  ASSERT_TRUE(store_->EnsureTasks(job, {SpecOf(job, Timing("p"), CudaDevice("GPU-2"))}, clock_.Now()).ok());
  Call(Request("w", {}, {CudaDevice("GPU-1"), CudaDevice("GPU-2")}));
  const auto choose = [&] {
    return dispatcher_->ChooseDevice(v1::CUDA, "", std::chrono::milliseconds(0), CancellationToken(), job);
  };
  EXPECT_EQ(choose()->uuid(), "GPU-2");
  EXPECT_EQ(choose()->uuid(), "GPU-2");
  Call(Request("w", {}, {CudaDevice("GPU-1")}));
  EXPECT_EQ(choose()->uuid(), "GPU-1") << "its own is gone";
}

TEST_F(DeviceChoiceTest, SilentWorkersCountAsDisconnected) {
  Call(Request("w", {}, {CudaDevice()}));
  EXPECT_TRUE(dispatcher_->Workers().at(0).connected());
  clock_.Advance(std::chrono::seconds(21));
  EXPECT_FALSE(dispatcher_->Workers().at(0).connected());
  EXPECT_FALSE(
      dispatcher_->ChooseDevice(v1::CUDA, "", std::chrono::milliseconds(0), CancellationToken()).ok());
}

}  // namespace
}  // namespace fusion
