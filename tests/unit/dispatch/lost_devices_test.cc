// Jobs whose device is gone.
#include <gmock/gmock.h>

#include "tests/unit/dispatch/dispatch_fixture.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

class LostDevicesTest : public DispatchTest {
 protected:
  void SetUp() override {
    DispatchTest::SetUp();
    job_ = NewJob();
    Call(Request("first", {}, {CudaDevice("GPU-1")}));
  }
  // The job times on GPU-1.
  std::future<absl::Status> StartTiming() {
    return std::async(std::launch::async, [this] {
      return dispatcher_->Time(job_, {Timing("p")}, CudaDevice("GPU-1"), CancellationToken(),
                               [](int, const v1::TimeResult&, bool) {});
    });
  }
  absl::StatusOr<v1::DeviceDescription> Choose() {
    return dispatcher_->ChooseDevice(v1::CUDA, "", std::chrono::milliseconds(0), CancellationToken(), job_);
  }
  // Long enough for a thread that looks every second.
  static bool Ends(const std::future<absl::Status>& timed) {
    return timed.wait_for(std::chrono::seconds(30)) == std::future_status::ready;
  }

  std::string job_;
};

TEST_F(LostDevicesTest, AJobGoesOnWithAnotherDeviceOfItsKind) {
  std::future<absl::Status> timed = StartTiming();
  const std::vector<v1::Assignment> work = Take(Request("first", {}, {CudaDevice("GPU-1")}), 1);
  clock_.Advance(std::chrono::seconds(16));  // longer than a lease
  Call(Request("slower", {}, {CudaDevice("GPU-3", "sm_80")}));
  Call(Request("second", {}, {CudaDevice("GPU-2")}));
  ASSERT_TRUE(Ends(timed));
  const absl::Status status = timed.get();
  EXPECT_TRUE(absl::IsAborted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("the device H200 GPU-1 is lost"));
  EXPECT_EQ(store_->GetTask(work[0].task())->state, TaskState::kCancelled);
  EXPECT_EQ(Choose()->uuid(), "GPU-2");
  // Its worker comes back: what the job has begun on the other it goes on with there.
  Call(Request("first", {}, {CudaDevice("GPU-1")}));
  ASSERT_TRUE(dispatcher_->Enqueue(job_, {SpecOf(job_, Timing("p"), CudaDevice("GPU-2"))}).ok());
  EXPECT_EQ(Choose()->uuid(), "GPU-2");
}

// However idle it is by then.
TEST_F(LostDevicesTest, ADeviceThatHasComeBackIsNotTheJobsAgain) {
  std::future<absl::Status> timed = StartTiming();
  Take(Request("first", {}, {CudaDevice("GPU-1")}), 1);
  clock_.Advance(std::chrono::seconds(16));
  Call(Request("second", {}, {CudaDevice("GPU-2")}));
  ASSERT_TRUE(Ends(timed));
  EXPECT_TRUE(absl::IsAborted(timed.get()));
  const auto other = [&] {
    return dispatcher_->ChooseDevice(v1::CUDA, "", std::chrono::milliseconds(0), CancellationToken(),
                                     NewJob());
  };
  EXPECT_EQ(other()->uuid(), "GPU-2");
  Call(Request("first", {}, {CudaDevice("GPU-1")}));
  EXPECT_EQ(Choose()->uuid(), "GPU-2");
  EXPECT_EQ(other()->uuid(), "GPU-1");
}

// The link was cut between two calls: no lease ends.
TEST_F(LostDevicesTest, AJobWhoseDeviceFellSilentBeforeItTookTheTaskGoesOnAsSoon) {
  std::future<absl::Status> timed = StartTiming();
  AwaitLiveTasks(1);
  clock_.Advance(std::chrono::seconds(16));
  Call(Request("second", {}, {CudaDevice("GPU-2")}));
  ASSERT_TRUE(Ends(timed));
  EXPECT_TRUE(absl::IsAborted(timed.get()));
  EXPECT_EQ(Choose()->uuid(), "GPU-2");
}

TEST_F(LostDevicesTest, ADrainingWorkerFinishesWhatItHasAndTheRestGoesElsewhere) {
  Call(Request("second", {}, {CudaDevice("GPU-2")}));
  std::future<absl::Status> timed = StartTiming();
  std::vector<v1::Assignment> work = Take(Request("first", {}, {CudaDevice("GPU-1")}), 1);
  ASSERT_TRUE(dispatcher_->Drain("first").ok());
  EXPECT_EQ(timed.wait_for(20 * options_.look_period), std::future_status::timeout) << "it is being timed";
  Call(Request("first", {Timed(work[0], 1)}, {CudaDevice("GPU-1")}));
  EXPECT_TRUE(timed.get().ok());

  timed = std::async(std::launch::async, [this] {
    return dispatcher_->Time(job_, {Timing("q")}, CudaDevice("GPU-1"), CancellationToken(),
                             [](int, const v1::TimeResult&, bool) {});
  });
  ASSERT_TRUE(Ends(timed));
  EXPECT_TRUE(absl::IsAborted(timed.get()));
  EXPECT_EQ(Choose()->uuid(), "GPU-2");
}

TEST_F(LostDevicesTest, ADeviceThatStaysTakenOutIsLost) {
  Call(Request("second", {}, {CudaDevice("GPU-2")}));
  v1::SynchronizeRequest out = Request("first", {}, {CudaDevice("GPU-1")});
  out.add_problems()->set_device_uuid("GPU-1");
  Call(out);
  std::future<absl::Status> timed = StartTiming();
  EXPECT_EQ(timed.wait_for(20 * options_.look_period), std::future_status::timeout)
      << "it may be sound in a moment";
  out.mutable_problems(0)->set_seconds(31);
  Call(out);
  ASSERT_TRUE(Ends(timed));
  EXPECT_TRUE(absl::IsAborted(timed.get()));
  EXPECT_EQ(Choose()->uuid(), "GPU-2");
}

TEST_F(LostDevicesTest, WithoutAnotherOfItsKindTheJobWaits) {
  options_.no_worker_patience = std::chrono::milliseconds(200);
  options_.restart_grace = std::chrono::milliseconds(0);  // no other process is to have left the job
  StartServer();
  Call(Request("first", {}, {CudaDevice("GPU-1")}));
  std::future<absl::Status> timed = StartTiming();
  Take(Request("first", {}, {CudaDevice("GPU-1")}), 1);
  clock_.Advance(std::chrono::seconds(16));
  Call(Request("slower", {}, {CudaDevice("GPU-3", "sm_80")}));
  const absl::Status status = timed.get();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("no worker with a cuda device of arch sm_90"));
}

}  // namespace
}  // namespace fusion
