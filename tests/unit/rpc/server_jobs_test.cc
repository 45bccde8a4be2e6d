// Jobs of a whole server: their events, ends, and what becomes of them over a restart.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/unit/rpc/server_fixture.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

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
  Barrier go;
  StartServer([&](const v1::SubmitRequest&, const PipelineContext& context) -> absl::StatusOr<v1::JobResult> {
    context.emit(Note("early"));
    EXPECT_TRUE(go.Wait());
    context.emit(Note("late"));
    return Result();
  });
  absl::StatusOr<v1::Job> job = Submit(Request());
  ASSERT_TRUE(job.ok());
  std::vector<v1::JobEvent> events, rest, none;
  EXPECT_TRUE(Watch(job->name(), 0, &events, [&](const v1::JobEvent&) { go.Open(); }).ok());
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
  Barrier started, seen;
  StartServer([&](const v1::SubmitRequest&, const PipelineContext& context) -> absl::StatusOr<v1::JobResult> {
    Barrier woken;
    auto registration = context.cancellation.OnCancel([&] { woken.Open(); });
    started.Open();
    EXPECT_TRUE(woken.Wait());
    seen.Open();
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
    Barrier woken;
    auto registration = context.cancellation.OnCancel([&] { woken.Open(); });
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
  Barrier started;
  auto until_cancelled = [&](const v1::SubmitRequest&,
                             const PipelineContext& context) -> absl::StatusOr<v1::JobResult> {
    context.emit(Note("first process"));
    Barrier woken;
    auto registration = context.cancellation.OnCancel([&] { woken.Open(); });
    started.Open();
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
  Barrier started;
  StartServer([&](const v1::SubmitRequest&, const PipelineContext& context) -> absl::StatusOr<v1::JobResult> {
    Barrier woken;
    auto registration = context.cancellation.OnCancel([&] { woken.Open(); });
    started.Open();
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
  Barrier started;
  StartServer([&](const v1::SubmitRequest&, const PipelineContext& context) -> absl::StatusOr<v1::JobResult> {
    Barrier woken;
    auto registration = context.cancellation.OnCancel([&] { woken.Open(); });
    context.emit(Note("running"));
    EXPECT_TRUE(woken.Wait());
    return absl::CancelledError("stopped");
  });
  absl::StatusOr<v1::Job> job = Submit(Request());
  ASSERT_TRUE(job.ok());
  absl::Status status;
  std::thread watcher([&] {
    std::vector<v1::JobEvent> events;
    status = Watch(job->name(), 0, &events, [&](const v1::JobEvent&) { started.Open(); });
  });
  ASSERT_TRUE(started.Wait());
  server_->Shutdown();
  watcher.join();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
}

}  // namespace
}  // namespace fusion
