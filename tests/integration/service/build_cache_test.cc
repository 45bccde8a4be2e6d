// Jobs while the build cache has no room at all: what they use stays, what they used goes.
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>
#include <vector>

#include "client/api/client.h"
#include "server/metrics/server_metrics.h"
#include "server/rpc/server.h"
#include "tests/example_source.h"
#include "worker/agent/agent.h"
#include "worker/agent/simulated_workplace.h"

namespace fusion {
namespace {

class BuildCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string path = (std::filesystem::temp_directory_path() / "fusion-test-XXXXXX").string();
    folder_ = mkdtemp(path.data());
    ServerOptions options;
    options.data_directory = folder_;
    options.build_cache.max_bytes = 1;
    options.build_cache.period = std::chrono::milliseconds(1);
    absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(options);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    client_ = std::make_unique<Client>(server_->InProcessChannel(), nullptr);
    AgentOptions agent;
    agent.name = "worker";
    agent.open_workplace = [](BlobTransfer* blobs) {
      return std::make_unique<SimulatedWorkplace>(
          SimulationOptions{.build_seconds = 0.001, .time_seconds = 0.001}, blobs);
    };
    agent_ = std::make_unique<Agent>(agent, server_->InProcessChannel());
    worker_ = std::thread([this] { EXPECT_TRUE(agent_->Run().ok()); });
  }
  void TearDown() override {
    agent_->Stop();
    worker_.join();
    server_.reset();
    std::filesystem::remove_all(folder_);
  }
  v1::Job Run(const std::string& example) {
    v1::SubmitRequest request;
    *request.mutable_source() = testing::ExampleSource(example);
    request.set_target(v1::CUDA);
    request.set_candidates(6);
    request.set_measure_all(true);
    absl::StatusOr<v1::Job> job = client_->Submit(request);
    if (job.ok()) job = client_->WatchJob(job->name(), 0, [](const v1::JobEvent&) {});
    EXPECT_TRUE(job.ok()) << job.status();
    return job.value_or(v1::Job());
  }

  std::string folder_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<Agent> agent_;
  std::thread worker_;
};

TEST_F(BuildCacheTest, JobsEndWellAndWhatTheyUsedIsBuiltAnew) {
  // Two of each at a time, which share their builds.
  std::vector<std::thread> threads;
  for (const char* example : {"vadd", "bicgk", "vadd", "bicgk"})
    threads.emplace_back([this, example] {
      const v1::Job job = Run(example);
      EXPECT_EQ(job.state(), v1::SUCCEEDED) << example << ": " << job.error().message();
      // Its device code is among the files of the exported folder, which are made last.
      EXPECT_TRUE(client_->DownloadArtifact(job.name(), 1).ok());
    });
  for (std::thread& thread : threads) thread.join();
  ServerMetrics& metrics = server_->metrics();
  for (int i = 0; i < 6000 && metrics.build_cache_bytes->value() > 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(metrics.build_cache_bytes->value(), 0);
  EXPECT_GT(metrics.build_cache_evictions->value(), 0);

  const v1::Job again = Run("vadd");
  EXPECT_EQ(again.state(), v1::SUCCEEDED) << again.error().message();
  EXPECT_GT(again.result().builds(), 0);
  EXPECT_EQ(again.result().builds_reused(), 0);
  EXPECT_TRUE(server_->store().CheckIntegrity().ok());
}

// Nobody takes its code for code that was measured.
TEST_F(BuildCacheTest, FoldersOfSimulatedDevicesSayThatNothingRan) {
  const v1::Job job = Run("vadd");
  ASSERT_EQ(job.state(), v1::SUCCEEDED) << job.error().message();
  const absl::StatusOr<v1::Artifact> artifact = client_->DownloadArtifact(job.name(), 1);
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  int said = 0;
  for (const v1::ArtifactFile& file : artifact->files()) {
    EXPECT_EQ(file.content().find("Verified on"), std::string::npos) << file.path();
    said += file.content().find("SIMULATED: no kernel ran") != std::string::npos;
  }
  EXPECT_EQ(said, 2);  // README.md and fused.h
}

}  // namespace
}  // namespace fusion
