#include "worker/measure/runner.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <thread>

#include "base/sandbox/message_pipe.h"
#include "worker/measure/host_backend.h"

namespace fusion {
namespace {

// One GPU works (the host, under its name), the other one does not.
RunnerDevices TwoGpus() {
  return {.cuda_uuids =
              [] {
                return std::vector<std::string>{"GPU-bad", "GPU-good"};
              },
          .outline =
              [](const std::string& uuid) {
                v1::DeviceDescription device;
                device.set_name("outline of " + uuid);
                return device;
              },
          .open = [](const std::string& uuid) -> absl::StatusOr<std::unique_ptr<ExecutionBackend>> {
            if (uuid == "GPU-bad") return absl::AbortedError("uncorrectable ECC error");
            return HostBackend::Open();
          }};
}

class RunnerTest : public ::testing::Test {
 protected:
  RunnerTest() {
    EXPECT_EQ(pipe(requests_), 0);
    EXPECT_EQ(pipe(replies_), 0);
    thread_ = std::thread([this] {
      Runner runner(requests_[0], replies_[1], activity_->get(), TwoGpus());
      served_ = runner.Serve();
    });
  }
  ~RunnerTest() override {
    close(requests_[1]);
    thread_.join();
    EXPECT_TRUE(absl::IsCancelled(served_)) << "it goes on: " << served_;
    for (int descriptor : {requests_[0], replies_[0], replies_[1]}) close(descriptor);
  }
  v1::RunnerReply Describe(const v1::DescribeRequest& describe) {
    v1::RunnerRequest request;
    *request.mutable_describe() = describe;
    EXPECT_TRUE(WriteMessage(requests_[1], request).ok());
    v1::RunnerReply reply;
    EXPECT_TRUE(ReadMessage(replies_[0], &reply).ok());
    return reply;
  }

  int requests_[2] = {}, replies_[2] = {};
  absl::StatusOr<std::unique_ptr<ActivityPage>> activity_ = ActivityPage::Create();
  absl::Status served_;
  std::thread thread_;
};

TEST_F(RunnerTest, ADeviceThatCannotBeDescribedTakesNoOtherAway) {
  v1::DescribeRequest request;
  request.set_target(v1::CUDA);
  const v1::DescribeReply described = Describe(request).described();
  ASSERT_EQ(described.devices_size(), 2);
  EXPECT_EQ(described.devices(0).uuid(), "GPU-bad");
  EXPECT_EQ(described.devices(0).target(), v1::CUDA);
  EXPECT_EQ(described.devices(0).name(), "outline of GPU-bad");
  EXPECT_EQ(described.devices(0).copy_bytes_per_second(), 0);
  EXPECT_GT(described.devices(1).copy_bytes_per_second(), 0);
  ASSERT_EQ(described.problems_size(), 1);
  EXPECT_EQ(described.problems(0).device_uuid(), "GPU-bad");
  EXPECT_EQ(described.problems(0).reason(), "uncorrectable ECC error");
}

TEST_F(RunnerTest, WithoutUseNoDeviceIsOpened) {
  v1::DescribeRequest request;
  request.set_target(v1::CUDA);
  request.set_without_use(true);
  const v1::DescribeReply described = Describe(request).described();
  ASSERT_EQ(described.devices_size(), 2);
  EXPECT_EQ(described.devices(1).name(), "outline of GPU-good");
  EXPECT_EQ(described.problems_size(), 0);
}

TEST_F(RunnerTest, OneDeviceIsDescribedAlone) {
  v1::DescribeRequest request;
  request.set_device_uuid("GPU-bad");
  const v1::DescribeReply described = Describe(request).described();
  ASSERT_EQ(described.devices_size(), 1);
  EXPECT_EQ(described.problems_size(), 1);
}

}  // namespace
}  // namespace fusion
