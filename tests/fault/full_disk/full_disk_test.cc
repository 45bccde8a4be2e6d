// A server whose disk has a few KB left when jobs come, and room again later. GPUs are simulated; the disk is
// a file system of its own, which needs root.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/temporary_directory.h"
#include "fusion/v1/optimizer.grpc.pb.h"
#include "server/rpc/server.h"
#include "worker/agent/agent.h"
#include "worker/agent/simulated_workplace.h"

namespace fusion {
namespace {

using ::testing::AnyOf;

constexpr int64_t kDiskBytes = 12 << 20;

class FullDiskTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto folder = TemporaryDirectory::Create();
    ASSERT_TRUE(folder.ok()) << folder.status();
    folder_ = *std::move(folder);
    disk_ = absl::StrCat(folder_->path(), "/disk");
    std::filesystem::create_directory(disk_);
    if (mount("tmpfs", disk_.c_str(), "tmpfs", 0, absl::StrCat("size=", kDiskBytes).c_str()) != 0)
      GTEST_SKIP() << "SKIP: no file system can be mounted here";
    mounted_ = true;
    ServerOptions options;
    options.data_directory = disk_ + "/data";
    auto server = Server::Start(options);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    stub_ = v1::OptimizerService::NewStub(server_->InProcessChannel());
    AgentOptions worker;
    worker.name = "gpu1";
    worker.open_workplace = [](BlobTransfer* blobs) {
      return std::make_unique<SimulatedWorkplace>(
          SimulationOptions{.devices = 1, .build_seconds = 0.02, .time_seconds = 0.02}, blobs);
    };
    agent_ = std::make_unique<Agent>(worker, server_->InProcessChannel());
    working_ = std::thread([this] { EXPECT_TRUE(agent_->Run().ok()); });
  }
  void TearDown() override {
    MakeRoom();
    if (agent_ != nullptr) agent_->Stop();
    if (working_.joinable()) working_.join();
    agent_.reset();
    stub_.reset();
    server_.reset();
    if (mounted_) umount2(disk_.c_str(), MNT_DETACH);
  }

  // Takes all of the disk but so many bytes.
  void LeaveRoom(int64_t bytes) {
    const int file = open(Filler().c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    ASSERT_GE(file, 0);
    const std::string block(4096, 'f');
    off_t size = 0;
    while (write(file, block.data(), block.size()) == static_cast<ssize_t>(block.size()))
      size += static_cast<off_t>(block.size());
    ASSERT_GT(size, bytes);
    EXPECT_EQ(ftruncate(file, size - static_cast<off_t>(bytes)), 0);
    close(file);
  }
  void MakeRoom() {
    std::error_code error;
    std::filesystem::remove(Filler(), error);
  }

  // Of a graph of its own: nothing is known of it yet. Empty: refused.
  std::string Submit(int64_t n) {
    v1::SubmitRequest request;
    request.mutable_source()->set_fuse(
        absl::StrCat("size n = ", n, ";\nvector[n] x, y;\ninput x;\ny = exp(x);\nreturn y;\n"));
    request.set_target(v1::CUDA);
    request.set_candidates(2);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    v1::Job job;
    const grpc::Status status = stub_->Submit(&context, request, &job);
    if (!status.ok()) {
      EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
      return "";
    }
    return job.name();
  }
  // The state in which the job has ended, or, if it has not within that time, the one that it has.
  v1::JobState StateWithin(const std::string& job, std::chrono::seconds time) {
    {
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + time);
      v1::WatchJobRequest request;
      request.set_name(job);
      auto events = stub_->WatchJob(&context, request);
      v1::JobEvent event;
      while (events->Read(&event))
        if (event.has_finished()) break;
      context.TryCancel();
      events->Finish();
    }
    const auto record = server_->store().GetJob(job);
    EXPECT_TRUE(record.ok()) << record.status();
    v1::JobState state = v1::JOB_STATE_UNSPECIFIED;
    if (record.ok()) v1::JobState_Parse(JobStateName(record->state), &state);
    return state;
  }

  std::string Filler() const { return disk_ + "/fill"; }

  std::unique_ptr<TemporaryDirectory> folder_;
  std::string disk_;
  bool mounted_ = false;
  std::unique_ptr<Server> server_;
  std::unique_ptr<v1::OptimizerService::Stub> stub_;
  std::unique_ptr<Agent> agent_;
  std::thread working_;
};

TEST_F(FullDiskTest, AJobThatWasAcceptedEndsWhenThereIsRoomAgain) {
  const std::string first = Submit(1000);
  ASSERT_NE(first, "");
  ASSERT_EQ(StateWithin(first, std::chrono::seconds(60)), v1::SUCCEEDED);
  int accepted = 0;
  for (const int64_t room : {0, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256}) {
    LeaveRoom(room << 10);
    const std::string job = Submit(2000 + room);
    if (!job.empty()) {
      ++accepted;
      StateWithin(job, std::chrono::seconds(2));
    }
    MakeRoom();
    if (!job.empty()) {
      EXPECT_THAT(StateWithin(job, std::chrono::seconds(45)), AnyOf(v1::SUCCEEDED, v1::FAILED))
          << room << " KB were free";
    }
  }
  EXPECT_GT(accepted, 2);
  // All goes on in the same process.
  const std::string last = Submit(3000);
  ASSERT_NE(last, "");
  EXPECT_EQ(StateWithin(last, std::chrono::seconds(60)), v1::SUCCEEDED);
}

}  // namespace
}  // namespace fusion
