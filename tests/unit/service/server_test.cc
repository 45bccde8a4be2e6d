// The services of a whole server over its in-process channel, with pipelines made for each test.
#include "server/service/server.h"

#include <gmock/gmock.h>
#include <grpcpp/client_context.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "fusion/v1/optimizer.grpc.pb.h"
#include "fusion/v1/worker.grpc.pb.h"
#include "server/model/architecture.h"
#include "server/service/chunks.h"
#include "server/service/data_directory.h"
#include "server/service/status_conversion.h"

namespace fusion {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Pipeline = decltype(JobRunnerOptions::pipeline);

constexpr char kSource[] = "size n = 1000;\nvector[n] x, y, z;\ninput x, y;\nz = vadd(x, y);\nreturn z;\n";

v1::JobResult Result() {
  v1::JobResult result;
  result.set_builds(7);
  result.add_candidates()->set_outcome(v1::OK);
  return result;
}

v1::JobEvent Note(const std::string& text) {
  v1::JobEvent event;
  event.set_note(text);
  return event;
}

// A flag that one thread raises and others wait for.
class Signal {
 public:
  void Raise() {
    std::lock_guard lock(mutex_);
    raised_ = true;
    changed_.notify_all();
  }
  bool Wait() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60), [this] { return raised_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool raised_ = false;
};

class ServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto directory = TemporaryDirectory::Create();
    ASSERT_TRUE(directory.ok());
    directory_ = *std::move(directory);
  }
  void TearDown() override { server_.reset(); }

  void StartServer(Pipeline pipeline, bool resume = true) {
    server_.reset();
    ServerOptions options;
    options.data_directory = directory_->path();
    options.resume_jobs = resume;
    options.runner.pipeline = std::move(pipeline);
    absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(options);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    optimizer_ = v1::OptimizerService::NewStub(server_->InProcessChannel());
    worker_ = v1::WorkerService::NewStub(server_->InProcessChannel());
  }

  static v1::SubmitRequest Request(const std::string& request_id = "") {
    v1::SubmitRequest request;
    request.mutable_source()->set_fuse(kSource);
    request.mutable_source()->set_file_name("add.fuse");
    request.set_request_id(request_id);
    return request;
  }
  absl::StatusOr<v1::Job> Submit(const v1::SubmitRequest& request) {
    grpc::ClientContext context;
    v1::Job job;
    grpc::Status status = optimizer_->Submit(&context, request, &job);
    if (!status.ok()) return FromGrpcStatus(status);
    return job;
  }
  v1::Job Get(const std::string& name) {
    grpc::ClientContext context;
    v1::GetJobRequest request;
    request.set_name(name);
    v1::Job job;
    grpc::Status status = optimizer_->GetJob(&context, request, &job);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return job;
  }
  absl::Status Watch(const std::string& name, int64_t after, std::vector<v1::JobEvent>* events,
                     const std::function<void(const v1::JobEvent&)>& on_event = nullptr) {
    grpc::ClientContext context;
    v1::WatchJobRequest request;
    request.set_name(name);
    request.set_after_sequence(after);
    auto reader = optimizer_->WatchJob(&context, request);
    for (v1::JobEvent event; reader->Read(&event);) {
      events->push_back(event);
      if (on_event) on_event(event);
    }
    return FromGrpcStatus(reader->Finish());
  }

  std::unique_ptr<TemporaryDirectory> directory_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<v1::OptimizerService::Stub> optimizer_;
  std::unique_ptr<v1::WorkerService::Stub> worker_;
};

TEST_F(ServerTest, JobRunsAndItsEventsAreStreamedInOrder) {
  StartServer([](const v1::SubmitRequest&, const PipelineContext& context) -> absl::StatusOr<v1::JobResult> {
    context.emit(Note("one"));
    context.emit(Note("two"));
    return Result();
  });
  absl::StatusOr<v1::Job> job = Submit(Request());
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->graph().name(), "add");
  EXPECT_EQ(job->graph().size_values().at("n"), 1000);
  std::vector<v1::JobEvent> events;
  EXPECT_TRUE(Watch(job->name(), 0, &events).ok());
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].note(), "one");
  EXPECT_EQ(events[0].sequence(), 1);
  EXPECT_GT(events[0].time().seconds(), 0);
  EXPECT_EQ(events[1].note(), "two");
  EXPECT_EQ(events[2].sequence(), 3);
  EXPECT_EQ(events[2].finished().state(), v1::SUCCEEDED);
  EXPECT_EQ(events[2].finished().result().builds(), 7);
  EXPECT_EQ(Get(job->name()).result().builds(), 7);
}

TEST_F(ServerTest, WatchingGoesOnAfterAnEventAndSeesLiveOnes) {
  Signal go;
  StartServer([&](const v1::SubmitRequest&, const PipelineContext& context) -> absl::StatusOr<v1::JobResult> {
    context.emit(Note("early"));
    EXPECT_TRUE(go.Wait());
    context.emit(Note("late"));
    return Result();
  });
  absl::StatusOr<v1::Job> job = Submit(Request());
  ASSERT_TRUE(job.ok());
  std::vector<v1::JobEvent> events, rest, none;
  EXPECT_TRUE(Watch(job->name(), 0, &events, [&](const v1::JobEvent&) { go.Raise(); }).ok());
  EXPECT_EQ(events.size(), 3u);
  EXPECT_TRUE(Watch(job->name(), 1, &rest).ok());
  ASSERT_EQ(rest.size(), 2u);
  EXPECT_EQ(rest[0].note(), "late");
  EXPECT_TRUE(Watch(job->name(), 3, &none).ok());
  EXPECT_TRUE(none.empty());
  EXPECT_TRUE(absl::IsNotFound(Watch("jobs/none", 0, &none)));
}

TEST_F(ServerTest, BadGraphIsRefusedWithViolationsAndNoJob) {
  StartServer([](const v1::SubmitRequest&, const PipelineContext&) { return Result(); });
  v1::SubmitRequest request = Request();
  request.mutable_source()->set_fuse(
      "size n;\nvector[n] x, y;\ninput x;\ny = nothing_like_it(x);\nreturn y;\n");
  absl::StatusOr<v1::Job> job = Submit(request);
  EXPECT_TRUE(absl::IsInvalidArgument(job.status())) << job.status();
  EXPECT_THAT(FieldViolations(job.status())[0].field(), HasSubstr("add.fuse:4:5"));
  for (auto change : std::vector<std::function<void(v1::SubmitRequest*)>>{
           [](auto* r) { r->set_candidates(-1); }, [](auto* r) { r->set_candidates(1001); },
           [](auto* r) { r->set_arch("sm_90 -o /etc/passwd"); }, [](auto* r) { r->set_arch("-x"); },
           [](auto* r) { r->set_arch("banana"); }, [](auto* r) { r->set_arch("sm_70"); },
           [](auto* r) { r->set_target(v1::HOST), r->set_arch("sm_90"); },
           [](auto* r) { r->set_time_limit_seconds(-1); },
           [](auto* r) { (*r->mutable_source()->mutable_size_values())["m"] = 3; }}) {
    v1::SubmitRequest bad = Request();
    change(&bad);
    EXPECT_TRUE(absl::IsInvalidArgument(Submit(bad).status())) << bad.ShortDebugString();
  }
  grpc::ClientContext context;
  v1::ListJobsResponse jobs;
  ASSERT_TRUE(optimizer_->ListJobs(&context, v1::ListJobsRequest(), &jobs).ok());
  EXPECT_EQ(jobs.jobs_size(), 0);
}

TEST_F(ServerTest, SameRequestIdIsTheSameJobAndRunsOnce) {
  std::atomic<int> runs{0};
  StartServer([&](const v1::SubmitRequest&, const PipelineContext&) {
    ++runs;
    return Result();
  });
  absl::StatusOr<v1::Job> first = Submit(Request("id")), second = Submit(Request("id")),
                          third = Submit(Request("other"));
  ASSERT_TRUE(first.ok() && second.ok() && third.ok());
  EXPECT_EQ(first->name(), second->name());
  EXPECT_NE(first->name(), third->name());
  std::vector<v1::JobEvent> events;
  EXPECT_TRUE(Watch(first->name(), 0, &events).ok());
  EXPECT_TRUE(Watch(third->name(), 0, &events).ok());
  EXPECT_EQ(runs, 2);
}

TEST_F(ServerTest, ErrorsAndExceptionsOfAPipelineAreTheJobsError) {
  StartServer([](const v1::SubmitRequest& request, const PipelineContext&) -> absl::StatusOr<v1::JobResult> {
    if (request.candidates() == 1) throw std::runtime_error("thrown");
    return InvalidField("f:1:1", "too large for the device");
  });
  absl::StatusOr<v1::Job> job = Submit(Request());
  ASSERT_TRUE(job.ok());
  std::vector<v1::JobEvent> events;
  EXPECT_TRUE(Watch(job->name(), 0, &events).ok());
  EXPECT_EQ(events.back().finished().state(), v1::FAILED);
  const absl::Status error = FromRpcStatus(events.back().finished().error());
  EXPECT_TRUE(absl::IsInvalidArgument(error));
  EXPECT_EQ(FieldViolations(error).size(), 1u);

  v1::SubmitRequest throwing = Request();
  throwing.set_candidates(1);
  job = Submit(throwing);
  ASSERT_TRUE(job.ok());
  EXPECT_TRUE(Watch(job->name(), 0, &events).ok());
  EXPECT_THAT(events.back().finished().error().message(), HasSubstr("thrown"));
}

TEST_F(ServerTest, CancelEndsTheJobAtOnceAndStopsThePipeline) {
  Signal started, seen;
  StartServer([&](const v1::SubmitRequest&, const PipelineContext& context) -> absl::StatusOr<v1::JobResult> {
    Signal woken;
    auto registration = context.cancellation.OnCancel([&] { woken.Raise(); });
    started.Raise();
    EXPECT_TRUE(woken.Wait());
    seen.Raise();
    return absl::CancelledError("cancelled");
  });
  absl::StatusOr<v1::Job> job = Submit(Request());
  ASSERT_TRUE(job.ok());
  ASSERT_TRUE(started.Wait());
  grpc::ClientContext context;
  v1::CancelJobRequest request;
  request.set_name(job->name());
  v1::Job cancelled;
  ASSERT_TRUE(optimizer_->CancelJob(&context, request, &cancelled).ok());
  EXPECT_EQ(cancelled.state(), v1::CANCELLED);
  EXPECT_TRUE(seen.Wait());
  std::vector<v1::JobEvent> events;
  EXPECT_TRUE(Watch(job->name(), 0, &events).ok());
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].finished().state(), v1::CANCELLED);
  // Again: it stays as it is.
  grpc::ClientContext again;
  ASSERT_TRUE(optimizer_->CancelJob(&again, request, &cancelled).ok());
  EXPECT_EQ(cancelled.state(), v1::CANCELLED);
}

TEST_F(ServerTest, TimeLimitFailsTheJobWithDeadlineExceeded) {
  StartServer([&](const v1::SubmitRequest&, const PipelineContext& context) -> absl::StatusOr<v1::JobResult> {
    Signal woken;
    auto registration = context.cancellation.OnCancel([&] { woken.Raise(); });
    EXPECT_TRUE(woken.Wait());
    return absl::CancelledError("cancelled");
  });
  v1::SubmitRequest request = Request();
  request.set_time_limit_seconds(0.05);
  absl::StatusOr<v1::Job> job = Submit(request);
  ASSERT_TRUE(job.ok());
  std::vector<v1::JobEvent> events;
  EXPECT_TRUE(Watch(job->name(), 0, &events).ok());
  EXPECT_EQ(events.back().finished().state(), v1::FAILED);
  EXPECT_TRUE(absl::IsDeadlineExceeded(FromRpcStatus(events.back().finished().error())));
}

TEST_F(ServerTest, ARestartedServerGoesOnWithUnfinishedJobs) {
  Signal started;
  auto until_cancelled = [&](const v1::SubmitRequest&,
                             const PipelineContext& context) -> absl::StatusOr<v1::JobResult> {
    context.emit(Note("first process"));
    Signal woken;
    auto registration = context.cancellation.OnCancel([&] { woken.Raise(); });
    started.Raise();
    EXPECT_TRUE(woken.Wait());
    return absl::CancelledError("stopped");
  };
  auto finishing = [](const v1::SubmitRequest&,
                      const PipelineContext& context) -> absl::StatusOr<v1::JobResult> {
    context.emit(Note("second process"));
    return Result();
  };
  StartServer(until_cancelled);
  absl::StatusOr<v1::Job> job = Submit(Request());
  ASSERT_TRUE(job.ok());
  ASSERT_TRUE(started.Wait());
  StartServer(finishing);
  std::vector<v1::JobEvent> events;
  EXPECT_TRUE(Watch(job->name(), 0, &events).ok());
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].note(), "first process");
  EXPECT_EQ(events[1].note(), "second process");
  EXPECT_EQ(events[2].finished().state(), v1::SUCCEEDED);
}

TEST_F(ServerTest, WithoutResumeAJobGoesOnWhenItIsWatched) {
  Signal started;
  StartServer([&](const v1::SubmitRequest&, const PipelineContext& context) -> absl::StatusOr<v1::JobResult> {
    Signal woken;
    auto registration = context.cancellation.OnCancel([&] { woken.Raise(); });
    started.Raise();
    EXPECT_TRUE(woken.Wait());
    return absl::CancelledError("stopped");
  });
  absl::StatusOr<v1::Job> job = Submit(Request());
  ASSERT_TRUE(job.ok());
  ASSERT_TRUE(started.Wait());
  std::atomic<int> runs{0};
  StartServer(
      [&](const v1::SubmitRequest&, const PipelineContext&) {
        ++runs;
        return Result();
      },
      /*resume=*/false);
  EXPECT_EQ(Get(job->name()).state(), v1::RUNNING);
  EXPECT_EQ(runs, 0);
  std::vector<v1::JobEvent> events;
  EXPECT_TRUE(Watch(job->name(), 0, &events).ok());
  EXPECT_EQ(events.back().finished().state(), v1::SUCCEEDED);
  EXPECT_EQ(runs, 1);
}

TEST_F(ServerTest, ShutdownEndsWatchersWithUnavailable) {
  Signal started;
  StartServer([&](const v1::SubmitRequest&, const PipelineContext& context) -> absl::StatusOr<v1::JobResult> {
    Signal woken;
    auto registration = context.cancellation.OnCancel([&] { woken.Raise(); });
    context.emit(Note("running"));
    EXPECT_TRUE(woken.Wait());
    return absl::CancelledError("stopped");
  });
  absl::StatusOr<v1::Job> job = Submit(Request());
  ASSERT_TRUE(job.ok());
  absl::Status status;
  std::thread watcher([&] {
    std::vector<v1::JobEvent> events;
    status = Watch(job->name(), 0, &events, [&](const v1::JobEvent&) { started.Raise(); });
  });
  ASSERT_TRUE(started.Wait());
  server_->Shutdown();
  watcher.join();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
}

TEST_F(ServerTest, SecondServerOnTheDataDirectoryIsRefused) {
  StartServer([](const v1::SubmitRequest&, const PipelineContext&) { return Result(); });
  ServerOptions options;
  options.data_directory = directory_->path();
  absl::StatusOr<std::unique_ptr<Server>> second = Server::Start(options);
  EXPECT_TRUE(absl::IsUnavailable(second.status())) << second.status();
}

TEST_F(ServerTest, TakenAddressIsAClearError) {
  StartServer([](const v1::SubmitRequest&, const PipelineContext&) { return Result(); });
  auto other_directory = TemporaryDirectory::Create(), third_directory = TemporaryDirectory::Create();
  ASSERT_TRUE(other_directory.ok() && third_directory.ok());
  ServerOptions options;
  options.address = "127.0.0.1:0";
  options.data_directory = (*other_directory)->path();
  absl::StatusOr<std::unique_ptr<Server>> first = Server::Start(options);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_THAT((*first)->address(), ::testing::MatchesRegex("127.0.0.1:[1-9][0-9]*"));
  options.address = (*first)->address();
  options.data_directory = (*third_directory)->path();
  absl::StatusOr<std::unique_ptr<Server>> second = Server::Start(options);
  EXPECT_TRUE(absl::IsUnavailable(second.status())) << second.status();
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("cannot listen on 127.0.0.1"));
}

TEST_F(ServerTest, BlobsTravelInChunks) {
  StartServer([](const v1::SubmitRequest&, const PipelineContext&) { return Result(); });
  const std::string bytes(3 * kChunkBytes + 17, 'x');
  auto write = [&](const std::string& digest) -> absl::StatusOr<std::string> {
    grpc::ClientContext context;
    v1::WriteBlobResponse response;
    auto writer = worker_->WriteBlob(&context, &response);
    ChunkSplitter splitter(digest, bytes);
    for (v1::Chunk chunk; splitter.Next(&chunk);)
      if (!writer->Write(chunk)) break;
    writer->WritesDone();
    grpc::Status status = writer->Finish();
    if (!status.ok()) return FromGrpcStatus(status);
    return response.digest();
  };
  auto read = [&](const std::string& digest) -> absl::StatusOr<std::string> {
    grpc::ClientContext context;
    v1::ReadBlobRequest request;
    request.set_digest(digest);
    auto reader = worker_->ReadBlob(&context, request);
    ChunkAssembler assembler;
    for (v1::Chunk chunk; reader->Read(&chunk);)
      if (absl::Status status = assembler.Add(chunk); !status.ok()) return status;
    grpc::Status status = reader->Finish();
    if (!status.ok()) return FromGrpcStatus(status);
    return std::move(assembler).Finish();
  };
  absl::StatusOr<std::string> digest = write(BlobDigest(bytes));
  ASSERT_TRUE(digest.ok()) << digest.status();
  absl::StatusOr<std::string> back = read(*digest);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, bytes);
  EXPECT_TRUE(absl::IsDataLoss(write("sha256:0123").status()));
  EXPECT_TRUE(absl::IsNotFound(read("sha256:0123").status()));
}

TEST_F(ServerTest, AnUnknownArchitectureIsServedByADeviceOfTheNearestOlderOne) {
  StartServer([](const v1::SubmitRequest&, const PipelineContext&) { return Result(); });
  const auto connect = [&](const std::string& worker, const std::string& arch) {
    v1::SynchronizeRequest request;
    v1::SynchronizeResponse response;
    request.set_worker(worker);
    request.set_instance("1");
    *request.add_devices() = DescribedCudaDevice("sm_86");
    request.mutable_devices(0)->set_name("the GPU of " + worker);
    request.mutable_devices(0)->set_uuid(worker);
    request.mutable_devices(0)->set_arch(arch);
    grpc::ClientContext context;
    EXPECT_TRUE(worker_->Synchronize(&context, request, &response).ok());
  };
  const auto explain = [&] {
    v1::ExplainRequest request;
    *request.mutable_source() = Request().source();
    request.set_arch("sm_87");
    v1::ExplainResponse response;
    grpc::ClientContext context;
    const grpc::Status status = optimizer_->Explain(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  };
  connect("alpha", "sm_86");
  const v1::ExplainResponse nearest = explain();
  EXPECT_EQ(nearest.device().name(), "the GPU of alpha");
  EXPECT_THAT(nearest.search().notes(), Contains(HasSubstr("taking the nearest older one, sm_86")));
  connect("beta", "sm_87");
  const v1::ExplainResponse exact = explain();
  EXPECT_EQ(exact.device().name(), "the GPU of beta");
  EXPECT_THAT(exact.search().notes(), Not(Contains(HasSubstr("nearest"))));
}

TEST_F(ServerTest, WorkersAreListedAndLongPollsEndAtShutdown) {
  StartServer([](const v1::SubmitRequest&, const PipelineContext&) { return Result(); });
  v1::SynchronizeRequest request;
  v1::SynchronizeResponse response;
  {
    grpc::ClientContext context;
    EXPECT_EQ(worker_->Synchronize(&context, request, &response).error_code(),
              grpc::StatusCode::INVALID_ARGUMENT);
  }
  request.set_worker("alpha");
  request.set_instance("1");
  {
    grpc::ClientContext context;
    ASSERT_TRUE(worker_->Synchronize(&context, request, &response).ok());
  }
  auto fleet = v1::FleetService::NewStub(server_->InProcessChannel());
  v1::ListWorkersResponse workers;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(fleet->ListWorkers(&context, v1::ListWorkersRequest(), &workers).ok());
  }
  ASSERT_EQ(workers.workers_size(), 1);
  EXPECT_THAT(workers.workers(0).name(), HasSubstr("alpha"));
  // Another worker waits for work.
  request.set_worker("beta");
  request.set_wait_seconds(1000);
  grpc::Status polled;
  std::thread poller([&] {
    grpc::ClientContext context;
    polled = worker_->Synchronize(&context, request, &response);
  });
  while (workers.workers_size() < 2) {
    grpc::ClientContext context;
    workers.Clear();
    ASSERT_TRUE(fleet->ListWorkers(&context, v1::ListWorkersRequest(), &workers).ok());
    std::this_thread::yield();
  }
  server_->Shutdown();
  poller.join();
  EXPECT_TRUE(polled.ok()) << polled.error_message();
}

TEST_F(ServerTest, ReportsOnThePredictionsOfJobsThatSucceeded) {
  StartServer([](const v1::SubmitRequest&, const PipelineContext&) -> absl::StatusOr<v1::JobResult> {
    v1::JobResult result;
    result.mutable_graph()->set_name("add");
    v1::Candidate* candidate = result.add_candidates();
    candidate->set_outcome(v1::OK);
    candidate->set_predicted_rank(1);
    candidate->set_predicted_seconds(3e-3);
    candidate->mutable_measured()->set_median(2e-3);
    return result;
  });
  auto report = [&](v1::ReportModelResponse* response) {
    grpc::ClientContext context;
    return optimizer_->ReportModel(&context, v1::ReportModelRequest(), response);
  };
  v1::ReportModelResponse response;
  EXPECT_EQ(report(&response).error_code(), grpc::StatusCode::NOT_FOUND);
  absl::StatusOr<v1::Job> job = Submit(Request());
  ASSERT_TRUE(job.ok());
  std::vector<v1::JobEvent> events;
  EXPECT_TRUE(Watch(job->name(), 0, &events).ok());
  const grpc::Status status = report(&response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(response.graphs_size(), 1);
  EXPECT_EQ(response.graphs(0).job(), job->name());
  EXPECT_DOUBLE_EQ(response.graphs(0).median_absolute_error(), 0.5);
}

TEST_F(ServerTest, CheckAndFunctions) {
  StartServer([](const v1::SubmitRequest&, const PipelineContext&) { return Result(); });
  v1::CheckRequest check;
  *check.mutable_source() = Request().source();
  v1::CheckResponse checked;
  {
    grpc::ClientContext context;
    grpc::Status status = optimizer_->Check(&context, check, &checked);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
  EXPECT_EQ(checked.graph().nodes(), 1);
  EXPECT_THAT(checked.fuse(), HasSubstr("vadd(x, y)"));
  EXPECT_THAT(checked.graphviz(), HasSubstr("digraph"));
  EXPECT_EQ(checked.proto().calls_size(), 1);

  v1::ListFunctionsRequest functions;
  functions.set_name("vadd");
  v1::ListFunctionsResponse found;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(optimizer_->ListFunctions(&context, functions, &found).ok());
  }
  ASSERT_EQ(found.functions_size(), 1);
  EXPECT_EQ(found.functions(0).name(), "vadd");
  functions.set_name("vaddd");
  grpc::ClientContext context;
  grpc::Status status = optimizer_->ListFunctions(&context, functions, &found);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr("did you mean vadd"));
}

}  // namespace
}  // namespace fusion
