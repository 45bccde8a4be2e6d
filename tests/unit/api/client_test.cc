#include "client/api/client.h"

#include <gmock/gmock.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/rpc/chunks.h"
#include "base/rpc/status_conversion.h"
#include "tests/eventually.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Serves one job of five events, but ends every stream after `events_per_stream` of them.
class BrokenServer : public v1::OptimizerService::Service {
 public:
  grpc::Status Submit(grpc::ServerContext* call, const v1::SubmitRequest* request, v1::Job* job) override {
    if (!known_fields.empty()) call->AddInitialMetadata("fusion-submission-fields", known_fields);
    request_ids.insert(request->request_id());
    time_limits.push_back(request->time_limit_seconds());
    if (refuse_for_good) return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "the disk is full");
    if (refusals_before_success-- > 0) return ToGrpcStatus(RetryLater("full", std::chrono::milliseconds(20)));
    if (failures_before_success-- > 0) return grpc::Status(grpc::StatusCode::UNAVAILABLE, "starting");
    if (request->source().fuse() == "bad")
      return ToGrpcStatus(InvalidField("f:1:1", std::string(20000, 'x')), kMaximumErrorBytes);
    job->set_name("jobs/1");
    return grpc::Status::OK;
  }
  grpc::Status Explain(grpc::ServerContext* call, const v1::ExplainRequest*,
                       v1::ExplainResponse* explanation) override {
    if (!known_fields.empty()) call->AddInitialMetadata("fusion-explanation-fields", known_fields);
    explanation->set_text("a search");
    return grpc::Status::OK;
  }
  grpc::Status GetJob(grpc::ServerContext*, const v1::GetJobRequest*, v1::Job* job) override {
    job->set_name("jobs/1");
    job->set_state(v1::SUCCEEDED);
    return grpc::Status::OK;
  }
  grpc::Status CancelJob(grpc::ServerContext*, const v1::CancelJobRequest* request, v1::Job*) override {
    cancelled.push_back(request->name());
    return cancels ? grpc::Status::OK : grpc::Status(grpc::StatusCode::INTERNAL, "the disk is full");
  }
  grpc::Status WatchJob(grpc::ServerContext* context, const v1::WatchJobRequest* request,
                        grpc::ServerWriter<v1::JobEvent>* writer) override {
    after_sequences.push_back(request->after_sequence());
    if (request->name() == "jobs/none") return grpc::Status(grpc::StatusCode::NOT_FOUND, "no such job");
    if (request->name() == "jobs/silent") {
      watching.set_value();
      EXPECT_TRUE(Eventually([&] { return context->IsCancelled(); }));
      return grpc::Status::CANCELLED;
    }
    int64_t sequence = request->after_sequence();
    for (int i = 0; i < events_per_stream && sequence < 5; ++i) {
      v1::JobEvent event;
      event.set_sequence(++sequence);
      if (sequence < 5) {
        event.set_note("note");
      } else {
        event.mutable_finished()->set_state(v1::SUCCEEDED);
        event.mutable_finished()->set_name("jobs/1");
      }
      writer->Write(event);
      if (repeat_events) writer->Write(event);
    }
    return request->after_sequence() == 5 ? grpc::Status::OK
                                          : grpc::Status(grpc::StatusCode::UNAVAILABLE, "broken");
  }
  grpc::Status DownloadArtifact(grpc::ServerContext*, const v1::DownloadArtifactRequest* request,
                                grpc::ServerWriter<v1::Chunk>* writer) override {
    v1::Artifact artifact;
    artifact.add_files()->set_path("fused.cu");
    const std::string bytes = artifact.SerializeAsString();
    ChunkSplitter splitter(request->rank() == 1 ? BlobDigest(bytes) : "sha256:0", bytes);
    for (v1::Chunk chunk; splitter.Next(&chunk);) writer->Write(chunk);
    return grpc::Status::OK;
  }

  grpc::Status ReportModel(grpc::ServerContext*, const v1::ReportModelRequest* request,
                           v1::ReportModelResponse* response) override {
    if (request->device() == "none") return grpc::Status(grpc::StatusCode::NOT_FOUND, "run submit first");
    response->set_candidates(request->jobs());
    return grpc::Status::OK;
  }

  std::string known_fields;  // what it says of itself
  bool cancels = true;
  std::vector<std::string> cancelled;
  int events_per_stream = 2;
  bool repeat_events = false;
  int failures_before_success = 0;
  int refusals_before_success = 0;
  bool refuse_for_good = false;
  std::vector<double> time_limits;
  std::set<std::string> request_ids;
  std::vector<int64_t> after_sequences;
  std::promise<void> watching;
};

class ClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    grpc::ServerBuilder builder;
    builder.RegisterService(&service_);
    builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, 2 * static_cast<int>(kMaximumErrorBytes));
    server_ = builder.BuildAndStart();
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_MAX_METADATA_SIZE, 2 * static_cast<int>(kMaximumErrorBytes));
    client_ = std::make_unique<Client>(server_->InProcessChannel(arguments), nullptr);
  }
  absl::StatusOr<v1::Job> Watch(const std::string& name, int64_t after, std::vector<int64_t>* sequences) {
    return client_->WatchJob(name, after,
                             [&](const v1::JobEvent& event) { sequences->push_back(event.sequence()); });
  }
  BrokenServer service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Client> client_;
};

TEST_F(ClientTest, AServerWithoutRoomIsAskedAgainWhenItSays) {
  service_.refusals_before_success = 3;
  int waits = 0;
  const auto start = std::chrono::steady_clock::now();
  const absl::StatusOr<v1::Job> job = client_->Submit({}, [&](const absl::Status& refusal) {
    EXPECT_EQ(refusal.message(), "full");
    ++waits;
  });
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(waits, 3);
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(60));
  EXPECT_EQ(service_.request_ids.size(), 1u) << "it is one request";
}

TEST_F(ClientTest, AServerThatNeverHasRoomIsNotAskedForEver) {
  service_.refusals_before_success = 1000;
  EXPECT_TRUE(absl::IsResourceExhausted(client_->Submit({}).status()));
  EXPECT_EQ(service_.time_limits.size(), 1u + Client::kRefusals);
}

TEST_F(ClientTest, WaitingForRoomIsPartOfTheTimeLimit) {
  v1::SubmitRequest request;
  request.set_time_limit_seconds(10);
  service_.refusals_before_success = 2;
  ASSERT_TRUE(client_->Submit(request).ok());
  ASSERT_EQ(service_.time_limits.size(), 3u);
  EXPECT_EQ(service_.time_limits[0], 10);
  EXPECT_LE(service_.time_limits[1], 9.98);
  EXPECT_LE(service_.time_limits[2], 9.96);
  EXPECT_GT(service_.time_limits[2], 0);

  service_.time_limits.clear();
  service_.refusals_before_success = 1000;
  request.set_time_limit_seconds(0.05);
  const absl::Status status = client_->Submit(request).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("before the server has room: full"));
  EXPECT_LE(service_.time_limits.size(), 3u);
}

TEST_F(ClientTest, ARefusalWithoutATimeIsFinal) {
  service_.refuse_for_good = true;
  EXPECT_TRUE(absl::IsResourceExhausted(client_->Submit({}).status()));
  EXPECT_EQ(service_.time_limits.size(), 1u);
}

TEST_F(ClientTest, WatchTakesABrokenStreamUpAfterTheLastEvent) {
  std::vector<int64_t> sequences;
  absl::StatusOr<v1::Job> job = Watch("jobs/1", 0, &sequences);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->state(), v1::SUCCEEDED);
  EXPECT_THAT(sequences, ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(service_.after_sequences, ElementsAre(0, 2, 4));
}

TEST_F(ClientTest, WatchShowsRepeatedEventsOnce) {
  service_.repeat_events = true;
  std::vector<int64_t> sequences;
  EXPECT_TRUE(Watch("jobs/1", 1, &sequences).ok());
  EXPECT_THAT(sequences, ElementsAre(2, 3, 4, 5));
}

TEST_F(ClientTest, WatchingAnEndedJobFromItsEndGivesTheJob) {
  std::vector<int64_t> sequences;
  absl::StatusOr<v1::Job> job = Watch("jobs/1", 5, &sequences);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->state(), v1::SUCCEEDED);
  EXPECT_TRUE(sequences.empty());
}

TEST_F(ClientTest, WatchDoesNotRepeatARealError) {
  std::vector<int64_t> sequences;
  EXPECT_TRUE(absl::IsNotFound(Watch("jobs/none", 0, &sequences).status()));
  EXPECT_EQ(service_.after_sequences.size(), 1u);
}

TEST_F(ClientTest, WatchGivesUpWhenPatienceEnds) {
  service_.events_per_stream = 0;
  absl::StatusOr<v1::Job> job = client_->WatchJob(
      "jobs/1", 0, [](const v1::JobEvent&) {}, std::chrono::seconds(0));
  EXPECT_TRUE(absl::IsUnavailable(job.status())) << job.status();
}

TEST_F(ClientTest, SubmitIsRepeatedUnderOneRequestId) {
  service_.failures_before_success = 2;
  absl::StatusOr<v1::Job> job = client_->Submit(v1::SubmitRequest());
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->name(), "jobs/1");
  ASSERT_EQ(service_.request_ids.size(), 1u);
  EXPECT_EQ(service_.request_ids.begin()->size(), 32u);
  ASSERT_TRUE(client_->Submit(v1::SubmitRequest()).ok());
  EXPECT_EQ(service_.request_ids.size(), 2u);
}

TEST_F(ClientTest, SubmitOutlastsAServerThatIsAwayForSeconds) {
  service_.failures_before_success = 5;
  int waits = 0;
  const absl::StatusOr<v1::Job> job = client_->Submit({}, [&](const absl::Status& reason) {
    EXPECT_TRUE(absl::IsUnavailable(reason)) << reason;
    ++waits;
  });
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(waits, 5);
}

TEST_F(ClientTest, SubmitGivesUpWhenPatienceOrItsTimeLimitEnds) {
  service_.failures_before_success = 1000;
  const absl::Status status = client_->Submit({}, nullptr, std::chrono::seconds(0)).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(service_.time_limits.size(), 1u);

  v1::SubmitRequest request;
  request.set_time_limit_seconds(0.25);
  const absl::Status late = client_->Submit(request).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(late)) << late;
  EXPECT_THAT(std::string(late.message()), HasSubstr("before the server answers: starting"));
  EXPECT_LE(service_.time_limits.size(), 3u);
}

TEST_F(ClientTest, AServerThatDoesNotKnowAFieldIsNoticedAndItsJobCancelled) {
  v1::SubmitRequest request;
  request.set_priority(3);
  for (const char* known : {"", "13", "x"}) {
    service_.known_fields = known;
    EXPECT_TRUE(client_->Submit(request).ok()) << "an earlier server knows priorities";
  }
  request.set_device("H100");
  for (const char* known : {"", "13", "x"}) {
    service_.known_fields = known;
    const absl::Status refused = client_->Submit(request).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()),
                ::testing::AllOf(HasSubstr("an earlier version"), HasSubstr("`device`"),
                                 HasSubstr("jobs/1 was cancelled")));
  }
  EXPECT_THAT(service_.cancelled, ElementsAre("jobs/1", "jobs/1", "jobs/1"));
  service_.cancels = false;
  EXPECT_THAT(std::string(client_->Submit(request).status().message()),
              HasSubstr("jobs/1 could not be cancelled: the disk is full"));
  for (const char* known : {"14", "15", "1000"}) {
    service_.known_fields = known;
    EXPECT_TRUE(client_->Submit(request).ok()) << known;
  }
}

TEST_F(ClientTest, AServerThatDoesNotKnowWhatAnExplanationAsksForIsNoticed) {
  v1::ExplainRequest request;
  request.mutable_hints();
  for (const char* known : {"", "9", "x"}) {
    service_.known_fields = known;
    EXPECT_TRUE(client_->Explain(request).ok()) << "an earlier server knows hints";
  }
  request.mutable_limits()->set_fusions(500);
  for (const char* known : {"", "9", "x"}) {
    service_.known_fields = known;
    const absl::Status refused = client_->Explain(request).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()),
                ::testing::AllOf(HasSubstr("an earlier version"), HasSubstr("`limits`")));
  }
  service_.known_fields = "10";
  EXPECT_EQ(client_->Explain(request)->text(), "a search");
}

TEST_F(ClientTest, AJobOfAGivenRequestIdIsNotCancelledForThat) {
  v1::SubmitRequest request;
  request.set_request_id("mine");
  request.set_device("H100");
  const absl::Status refused = client_->Submit(request).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("jobs cancel jobs/1"));
  EXPECT_THAT(service_.cancelled, ElementsAre());
}

TEST_F(ClientTest, LongErrorsArriveWhole) {
  v1::SubmitRequest request;
  request.mutable_source()->set_fuse("bad");
  absl::StatusOr<v1::Job> job = client_->Submit(request);
  EXPECT_TRUE(absl::IsInvalidArgument(job.status()));
  ASSERT_EQ(FieldViolations(job.status()).size(), 1u);
  EXPECT_EQ(FieldViolations(job.status())[0].description().size(), 20000u);
}

TEST_F(ClientTest, DownloadChecksTheDigest) {
  absl::StatusOr<v1::Artifact> artifact = client_->DownloadArtifact("jobs/1", 1);
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  EXPECT_EQ(artifact->files(0).path(), "fused.cu");
  EXPECT_TRUE(absl::IsDataLoss(client_->DownloadArtifact("jobs/1", 2).status()));
}

TEST_F(ClientTest, ReportModelGivesTheAnswerOrTheServersStatus) {
  v1::ReportModelRequest request;
  request.set_jobs(7);
  absl::StatusOr<v1::ReportModelResponse> report = client_->ReportModel(request);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->candidates(), 7);
  request.set_device("none");
  report = client_->ReportModel(request);
  EXPECT_TRUE(absl::IsNotFound(report.status())) << report.status();
  EXPECT_THAT(std::string(report.status().message()), HasSubstr("run submit first"));
}

TEST_F(ClientTest, InterruptEndsCallsInFlightAndLaterOnes) {
  std::vector<int64_t> sequences;
  absl::StatusOr<v1::Job> job;
  std::thread watcher([&] { job = Watch("jobs/silent", 0, &sequences); });
  service_.watching.get_future().wait();
  client_->Interrupt();
  watcher.join();
  EXPECT_TRUE(absl::IsCancelled(job.status())) << job.status();
  EXPECT_TRUE(absl::IsCancelled(client_->GetJob("jobs/1").status()));
}

TEST(ConnectTest, NothingAnswers) {
  absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect("127.0.0.1:1");
  EXPECT_TRUE(absl::IsUnavailable(client.status()));
  EXPECT_THAT(std::string(client.status().message()),
              HasSubstr("no server answers at 127.0.0.1:1; is the address right?"));
}

}  // namespace
}  // namespace fusion
