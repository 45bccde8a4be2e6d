// How much one caller may ask for, and what is written down.
#include <cstdlib>
#include <thread>

#include "google/rpc/error_details.pb.h"
#include "server/service/chunks.h"
#include "server/service/server_metrics.h"
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

// The digest.
std::string Upload(const std::shared_ptr<grpc::Channel>& channel, const std::string& bytes) {
  grpc::ClientContext context;
  v1::WriteBlobResponse response;
  const auto writer = v1::WorkerService::NewStub(channel)->WriteBlob(&context, &response);
  ChunkSplitter splitter(BlobDigest(bytes), bytes);
  for (v1::Chunk chunk; splitter.Next(&chunk);) writer->Write(chunk);
  writer->WritesDone();
  const grpc::Status status = writer->Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  return response.digest();
}

// Downloads of blobs that the one who asked does not read.
class Downloads {
 public:
  Downloads(std::shared_ptr<grpc::Channel> channel, const std::string& digest)
      : stub_(v1::WorkerService::NewStub(channel)) {
    request_.set_digest(digest);
  }
  ~Downloads() {
    for (auto& context : contexts_) context->TryCancel();
    for (auto& reader : readers_) reader->Finish();
  }
  void Begin() {
    contexts_.push_back(std::make_unique<grpc::ClientContext>());
    readers_.push_back(stub_->ReadBlob(contexts_.back().get(), request_));
  }
  // Reads one to its end.
  absl::Status Read(size_t which) {
    v1::Chunk chunk;
    while (readers_[which]->Read(&chunk)) {
    }
    absl::Status status = FromGrpcStatus(readers_[which]->Finish());
    contexts_.erase(contexts_.begin() + static_cast<std::ptrdiff_t>(which));
    readers_.erase(readers_.begin() + static_cast<std::ptrdiff_t>(which));
    return status;
  }
  absl::Status BeginAndRead() {
    Begin();
    return Read(readers_.size() - 1);
  }

 private:
  std::unique_ptr<v1::WorkerService::Stub> stub_;
  v1::ReadBlobRequest request_;
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts_;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::Chunk>>> readers_;
};

TEST_F(LimitsTest, WhoDoesNotTakeAnswersGetsNoneUntilTheyAreGivenUp) {
  constexpr size_t kBytes = 8 << 20;
  options_.gate.answers.of_connection = 3 * kBytes / 2;
  options_.gate.answers.patience = std::chrono::seconds(10);
  options_.gate.answers.bytes_per_second = 1 << 30;
  Start();
  const std::string digest = Upload(ChannelOf("worker-gpu1"), std::string(kBytes, 'x'));
  Downloads slow(ChannelOf("worker-gpu1"), digest), others(ChannelOf("worker-gpu2"), digest);
  EXPECT_TRUE(slow.BeginAndRead().ok());
  slow.Begin();
  slow.Begin();
  // Until both are there: a third that overtook one of them would wait behind it.
  const auto begin = std::chrono::steady_clock::now();
  const auto waiting_bytes = [&] {
    const std::string text = server_->metrics().registry.Text(), name = "\nfusion_answers_waiting_bytes ";
    const size_t at = text.find(name);
    return at == std::string::npos ? 0.0 : std::strtod(text.c_str() + at + name.size(), nullptr);
  };
  while (waiting_bytes() <= options_.gate.answers.of_connection &&
         std::chrono::steady_clock::now() - begin < std::chrono::seconds(8))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_GT(waiting_bytes(), options_.gate.answers.of_connection);
  absl::Status refused;
  while (refused.ok() && std::chrono::steady_clock::now() - begin < std::chrono::seconds(8))
    refused = slow.BeginAndRead();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("did not take"));
  EXPECT_TRUE(others.BeginAndRead().ok()) << "another connection";
  // One that is read is taken, and makes room; one that nobody reads is given up.
  const absl::Status late = slow.Read(0);
  EXPECT_TRUE(late.ok()) << late;
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  const auto says = [&] {
    return server_->metrics().registry.Text().find("fusion_answers_given_up_total 1\n") != std::string::npos;
  };
  while (!says() && std::chrono::steady_clock::now() < patience)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_TRUE(says());
  EXPECT_TRUE(absl::IsCancelled(slow.Read(0)));
  EXPECT_TRUE(slow.BeginAndRead().ok());
}

TEST_F(LimitsTest, WhatIsUploadedCountsAmongTheAnswersUntilItIsStoredOrGivenUp) {
  constexpr size_t kBytes = 1 << 20;
  options_.gate.answers.of_connection = kBytes;
  Start();
  const std::shared_ptr<grpc::Channel> channel = ChannelOf("user-eva");
  grpc::ClientContext context;
  v1::WriteBlobResponse response;
  const auto writer = v1::OptimizerService::NewStub(channel)->UploadInput(&context, &response);
  v1::Chunk chunk;
  chunk.set_digest(BlobDigest(std::string(kBytes, 'x')));
  chunk.set_total_bytes(kBytes);
  chunk.set_data("x");
  ASSERT_TRUE(writer->Write(chunk));
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  grpc::Status listed;
  while (listed.ok() && std::chrono::steady_clock::now() < patience) listed = Call(channel, ListJobsMethod());
  EXPECT_EQ(listed.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(Call(ChannelOf("user-max"), ListJobsMethod()).ok()) << "another connection";
  context.TryCancel();
  EXPECT_FALSE(writer->Finish().ok());
  while (!listed.ok() && std::chrono::steady_clock::now() < patience)
    listed = Call(channel, ListJobsMethod());
  EXPECT_TRUE(listed.ok()) << listed.error_message();
  EXPECT_TRUE(Client(channel, nullptr).UploadInput(std::string(kBytes, 'x')).ok());
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
