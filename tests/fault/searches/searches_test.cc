// Jobs whose searches are ended by their limit of memory, beside jobs of others: these end well, and wait
// little longer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/temporary_directory.h"
#include "client/api/client.h"
#include "server/rpc/server.h"
#include "server/search/search.h"
#include "tests/example_source.h"
#include "tests/fault/long_form.h"
#include "tests/large_source.h"
#include "worker/agent/agent.h"
#include "worker/agent/simulated_workplace.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

constexpr int kUsers = 3;

class SearchesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto directory = TemporaryDirectory::Create();
    ASSERT_TRUE(directory.ok()) << directory.status();
    directory_ = *std::move(directory);
    ServerOptions options;
    options.data_directory = directory_->path();
    options.search.memory_bytes = uint64_t{96} << 20;
    absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(options);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    AgentOptions agent;
    agent.name = "worker";
    agent.open_workplace = [](BlobTransfer* blobs) {
      return std::make_unique<SimulatedWorkplace>(
          SimulationOptions{.devices = 4, .build_seconds = 0.01, .time_seconds = 0.05}, blobs);
    };
    agent_ = std::make_unique<Agent>(agent, server_->InProcessChannel());
    worker_ = std::thread([this] { EXPECT_TRUE(agent_->Run().ok()); });
  }
  void TearDown() override {
    agent_->Stop();
    worker_.join();
    server_.reset();
  }
  v1::Job Run(const v1::GraphSource& source, int64_t fusions) {
    Client client(server_->InProcessChannel(), nullptr);
    v1::SubmitRequest request;
    *request.mutable_source() = source;
    request.set_target(v1::CUDA);
    request.set_candidates(4);
    request.mutable_limits()->set_fusions(fusions);
    absl::StatusOr<v1::Job> job = client.Submit(request);
    if (job.ok()) job = client.WatchJob(job->name(), 0, [](const v1::JobEvent&) {});
    EXPECT_TRUE(job.ok()) << job.status();
    return job.value_or(v1::Job());
  }
  // Users submit one job after the other until `enough`, each at least one. Seconds of their jobs.
  std::vector<double> RunUsers(const std::function<bool(int)>& enough) {
    std::vector<std::vector<double>> seconds(kUsers);
    std::vector<std::thread> users;
    for (int user = 0; user < kUsers; ++user)
      users.emplace_back([&, user] {
        do {
          const auto start = std::chrono::steady_clock::now();
          const v1::Job job = Run(testing::ExampleSource(user % 2 == 0 ? "vadd" : "bicgk"), 0);
          EXPECT_EQ(job.state(), v1::SUCCEEDED) << job.error().message();
          seconds[user].push_back(
              std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
        } while (!enough(static_cast<int>(seconds[user].size())));
      });
    for (std::thread& user : users) user.join();
    std::vector<double> all;
    for (const std::vector<double>& of_user : seconds) all.insert(all.end(), of_user.begin(), of_user.end());
    std::sort(all.begin(), all.end());
    return all;
  }

  std::unique_ptr<TemporaryDirectory> directory_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Agent> agent_;
  std::thread worker_;
};

double P99(const std::vector<double>& sorted) { return sorted[sorted.size() * 99 / 100]; }

TEST_F(SearchesTest, OneThatNeedsTooMuchMemoryEndsItsOwnJobAlone) {
  const int jobs = Count(4, 100);
  const std::vector<double> alone = RunUsers([&](int ended) { return ended >= jobs; });
  std::atomic<bool> over = false;
  std::thread large([&] {
    for (int i = 0; i < jobs; ++i) {
      const v1::Job job = Run(testing::LargeSource(), kMostFusions);
      EXPECT_EQ(job.state(), v1::FAILED);
      EXPECT_EQ(job.error().code(), static_cast<int>(absl::StatusCode::kResourceExhausted));
      EXPECT_THAT(job.error().message(), HasSubstr("more memory than it may have"));
    }
    over = true;
  });
  const std::vector<double> beside = RunUsers([&](int) { return over.load(); });
  large.join();
  std::printf("%d searches ended; %zu and %zu jobs of others, p99 %.3f s alone, %.3f s beside them\n", jobs,
              alone.size(), beside.size(), P99(alone), P99(beside));
}

}  // namespace
}  // namespace fusion
