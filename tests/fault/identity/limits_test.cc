// How much one caller may ask for, and what is written down.
#include <cstdlib>
#include <thread>

#include "base/rpc/chunks.h"
#include "google/rpc/error_details.pb.h"
#include "server/metrics/server_metrics.h"
#include "tests/fault/identity/farm_fixture.h"

namespace fusion::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

class LimitsTest : public FarmTest {
 protected:
  static std::optional<google::rpc::RetryInfo> RetryOf(const absl::Status& status) {
    auto payload = status.GetPayload("type.googleapis.com/google.rpc.RetryInfo");
    google::rpc::RetryInfo retry;
    if (!payload || !retry.ParseFromString(std::string(*payload))) return std::nullopt;
    return retry;
  }
};

TEST_F(LimitsTest, WhoAsksTooOftenIsToldWhenToAskAgainAndNobodyElseIs) {
  options_.gate.user_requests = {0.01, 5};
  Start();
  std::unique_ptr<Client> eva = ClientOf("user-eva");
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(eva->ListJobs(0, "").ok()) << i;
  const absl::Status status = eva->ListJobs(0, "").status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  const auto retry = RetryOf(status);
  ASSERT_TRUE(retry.has_value()) << status;
  EXPECT_GT(retry->retry_delay().seconds(), 0);
  EXPECT_LE(retry->retry_delay().seconds(), 100);
  // Another connection and a token of the same user share the bucket; another user has his own.
  EXPECT_TRUE(absl::IsResourceExhausted(ClientOf("user-eva")->ListJobs(0, "").status()));
  EXPECT_TRUE(
      absl::IsResourceExhausted(ClientWith(Token("eva", v1::USER).secret())->ListJobs(0, "").status()));
  EXPECT_TRUE(ClientOf("user-max")->ListJobs(0, "").ok());
  EXPECT_TRUE(ClientOf("admin-root")->ListJobs(0, "").ok());
}

TEST_F(LimitsTest, StreamsOfOnePrincipalAreCounted) {
  options_.gate.watched_jobs = 2;
  Start();
  std::unique_ptr<Client> eva = ClientOf("user-eva"), max = ClientOf("user-max"),
                          watching = ClientOf("user-eva");
  absl::StatusOr<v1::Job> job = eva->Submit(Request());
  absl::StatusOr<v1::Job> other = max->Submit(Request());
  ASSERT_TRUE(job.ok() && other.ok());
  auto ignore = [](const v1::JobEvent&) {};
  std::vector<std::thread> watchers;
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  // One may find both places taken, by the other and the third below: it tries again.
  for (int i = 0; i < 2; ++i)
    watchers.emplace_back([&] {
      while (absl::IsResourceExhausted(watching->WatchJob(job->name(), 0, ignore).status()) &&
             std::chrono::steady_clock::now() < patience) {
      }
    });
  // As soon as both are there, a third is refused; until then it is one that is interrupted.
  absl::Status third;
  while (!absl::IsResourceExhausted(third) && std::chrono::steady_clock::now() < patience) {
    v1::WatchJobRequest request;
    request.set_name(job->name());
    third = FromGrpcStatus(Call(ChannelOf("user-eva"), "/fusion.v1.OptimizerService/WatchJob",
                                request.SerializeAsString(), "", std::chrono::milliseconds(300)));
  }
  EXPECT_TRUE(absl::IsResourceExhausted(third)) << third;
  EXPECT_TRUE(RetryOf(third).has_value());
  v1::WatchJobRequest request;
  request.set_name(other->name());
  EXPECT_EQ(Call(ChannelOf("user-max"), "/fusion.v1.OptimizerService/WatchJob", request.SerializeAsString(),
                 "", std::chrono::milliseconds(300))
                .error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED)
      << "another user watches";
  watching->Interrupt();
  for (std::thread& watcher : watchers) watcher.join();
  // The places are free again, as soon as the server knows that nobody reads.
  ReleaseJobs();
  absl::Status again = absl::ResourceExhaustedError("not asked yet");
  while (absl::IsResourceExhausted(again) && std::chrono::steady_clock::now() < patience)
    again = eva->WatchJob(job->name(), 0, ignore).status();
  EXPECT_TRUE(again.ok()) << again;
}

TEST_F(LimitsTest, AMessageIsAsLargeAsItsMethodTakes) {
  Start();
  v1::GetJobRequest large;
  large.set_name(std::string(100 << 10, 'x'));
  const grpc::Status status =
      Call(ChannelOf("user-eva"), "/fusion.v1.OptimizerService/GetJob", large.SerializeAsString());
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
  v1::CheckRequest graph;
  graph.mutable_source()->set_fuse(kSource + std::string(1 << 20, '\n'));
  graph.set_brief(true);
  EXPECT_TRUE(
      Call(ChannelOf("user-eva"), "/fusion.v1.OptimizerService/Check", graph.SerializeAsString()).ok());
  // Nobody's large message is refused before it is read, whatever it asks.
  graph.mutable_source()->set_fuse(std::string(60 << 20, '\n'));
  EXPECT_EQ(Call(ChannelOf(""), "/fusion.v1.OptimizerService/Check", graph.SerializeAsString()).error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(LimitsTest, HeadersAreSmall) {
  Start();
  const grpc::Status status = Call(ChannelOf("user-eva"), ListJobsMethod(), "", std::string(100 << 10, 'a'));
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(Call(ChannelOf("user-eva"), ListJobsMethod()).ok());
}

TEST_F(LimitsTest, RefusalsAreWrittenDownButNotWithoutEnd) {
  options_.audit.refusals_of_one = {0.001, 3};
  Start();
  const auto eva = ChannelOf("user-eva"), max = ChannelOf("user-max");
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(Call(eva, "/fusion.v1.AdminService/ListTokens").error_code(),
              grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(Call(max, "/fusion.v1.FleetService/DrainWorker").error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  const std::vector<std::string> entries = Audit();
  EXPECT_EQ(std::count(entries.begin(), entries.end(), "PERMISSION_DENIED ListTokens eva "), 3);
  EXPECT_THAT(entries, Contains("PERMISSION_DENIED DrainWorker max "));
  EXPECT_THAT(entries, Contains(HasSubstr("17 entries were left out")));
}

TEST_F(LimitsTest, ChangesAreWrittenDown) {
  Start();
  std::unique_ptr<Client> root = ClientOf("admin-root");
  const v1::CreateTokenResponse token = Token("eva", v1::USER);
  EXPECT_TRUE(absl::IsNotFound(root->DrainWorker("workers/none").status()));
  const std::vector<std::string> entries = Audit();
  EXPECT_THAT(entries, Contains("OK CreateToken root " + token.token().name()));
  EXPECT_THAT(entries, Contains("NOT_FOUND DrainWorker root workers/none"));
  absl::StatusOr<v1::ListAuditEntriesResponse> all = root->ListAuditEntries(1, "");
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->entries(0).role(), v1::ADMIN);
  EXPECT_THAT(all->entries(0).peer(), HasSubstr("127.0.0.1"));
}

}  // namespace
}  // namespace fusion::testing
