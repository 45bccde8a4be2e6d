// Builds, timings and devices as job threads see them.
#include "server/dispatch/dispatcher.h"

#include <gmock/gmock.h>

#include <map>

#include "tests/unit/dispatch/dispatch_fixture.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using DispatcherTest = DispatchTest;

TEST_F(DispatcherTest, BuildsRunOnWorkersAndComeBackInOrder) {
  const std::string job = NewJob();
  std::vector<std::vector<int>> progress;
  auto built = std::async(std::launch::async, [&] {
    return dispatcher_->Build(job, {HostBuild("a"), HostBuild("b"), HostBuild("a")}, CancellationToken(),
                              [&](int done, int total, int reused, int failed) {
                                progress.push_back({done, total, reused, failed});
                              });
  });
  const std::vector<v1::Assignment> work = Take(Request("w"), 2);
  ASSERT_EQ(work.size(), 2u) << "equal tasks are built once";
  EXPECT_EQ(work[0].build().key(), "a");
  EXPECT_EQ(work[0].build().source(), "// a");
  EXPECT_EQ(work[0].fence(), 1);
  EXPECT_EQ(work[0].lease_seconds(), 15);
  const std::string binary = Upload("binary of b");
  const v1::SynchronizeResponse answer =
      Call(Request("w", {Built(work[1], v1::OK, binary), Built(work[0], v1::COMPILE_ERROR)}));
  EXPECT_THAT(answer.accepted(), ElementsAre(work[1].task(), work[0].task()));

  absl::StatusOr<std::vector<BuildOutcome>> outcomes = built.get();
  ASSERT_TRUE(outcomes.ok()) << outcomes.status();
  ASSERT_EQ(outcomes->size(), 3u);
  EXPECT_EQ((*outcomes)[0].result.outcome(), v1::COMPILE_ERROR);
  EXPECT_EQ((*outcomes)[0].result.log(), "log of " + work[0].task());
  EXPECT_EQ((*outcomes)[1].result.outcome(), v1::OK);
  EXPECT_EQ((*outcomes)[1].result.binary(), binary);
  EXPECT_EQ((*outcomes)[2].result.outcome(), v1::COMPILE_ERROR);
  EXPECT_FALSE((*outcomes)[1].reused);
  ASSERT_EQ(progress.size(), 3u);
  EXPECT_EQ(progress.back(), (std::vector<int>{3, 3, 0, 2}));
}

TEST_F(DispatcherTest, WhatWasBuiltOnceIsReusedWithoutAWorker) {
  BuildFuture built = StartBuild(NewJob(), {HostBuild("good"), HostBuild("bad")});
  const std::vector<v1::Assignment> work = Take(Request("w"), 2);
  Call(Request("w", {Built(work[0], v1::OK, Upload("binary")), Built(work[1], v1::COMPILE_ERROR)}));
  ASSERT_TRUE(built.get().ok());
  StartServer();
  absl::StatusOr<std::vector<BuildOutcome>> again =
      dispatcher_->Build(NewJob(), {HostBuild("bad"), HostBuild("good")}, CancellationToken());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE((*again)[0].reused && (*again)[1].reused);
  EXPECT_EQ((*again)[0].result.outcome(), v1::COMPILE_ERROR);
  EXPECT_EQ((*again)[0].result.log(), "log of " + work[1].task());
  EXPECT_EQ((*again)[1].result.outcome(), v1::OK);
}

TEST_F(DispatcherTest, ABuildThatWasRemovedFromTheCacheIsBuiltAnew) {
  const std::string first = NewJob(), second = NewJob();
  BuildFuture built = StartBuild(first, {HostBuild("k")});
  std::vector<v1::Assignment> work = Take(Request("w"), 1);
  Call(Request("w", {Built(work[0], v1::OK, Upload("binary"))}));
  ASSERT_TRUE(built.get().ok());
  const auto trim = [&] { return store_->TrimBuildCache(0, clock_.Now(), 100)->evicted; };
  EXPECT_EQ(trim(), 0) << "its job may need it yet";
  EXPECT_TRUE(dispatcher_->Build(second, {HostBuild("k")}, CancellationToken())->at(0).reused);
  JobUpdate ended;
  ended.state = JobState::kCancelled;
  ASSERT_TRUE(store_->UpdateJob(first, ended, clock_.Now()).ok());
  EXPECT_EQ(trim(), 0) << "and so may the one that found it in the cache";
  ASSERT_TRUE(store_->UpdateJob(second, ended, clock_.Now()).ok());
  EXPECT_EQ(trim(), 1);

  built = StartBuild(NewJob(), {HostBuild("k")});
  work = Take(Request("w"), 1);
  ASSERT_EQ(work.size(), 1u);
  Call(Request("w", {Built(work[0], v1::OK, Upload("binary"))}));
  const absl::StatusOr<std::vector<BuildOutcome>> again = built.get();
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_FALSE(again->at(0).reused);
  EXPECT_EQ(*store_->GetBlob(again->at(0).result.binary()), "binary");
  EXPECT_TRUE(store_->CheckIntegrity().ok());
}

TEST_F(DispatcherTest, ABuildThatTimedOutIsNotForOtherJobs) {
  BuildFuture built = StartBuild(NewJob(), {HostBuild("slow")});
  std::vector<v1::Assignment> work = Take(Request("w"), 1);
  Call(Request("w", {Built(work[0], v1::TIMEOUT)}));
  EXPECT_EQ(built.get()->front().result.outcome(), v1::TIMEOUT);
  built = StartBuild(NewJob(), {HostBuild("slow")});
  work = Take(Request("w"), 1);
  Call(Request("w", {Built(work[0], v1::OK, Upload("binary"))}));
  EXPECT_EQ(built.get()->front().result.outcome(), v1::OK);
}

TEST_F(DispatcherTest, TheSameBuildInFlightIsMerged) {
  BuildFuture first = StartBuild(NewJob(), {HostBuild("k")});
  const std::vector<v1::Assignment> work = Take(Request("w"), 1);
  BuildFuture second = StartBuild(NewJob(), {HostBuild("k"), HostBuild("only second")});
  const std::vector<v1::Assignment> more = Take(Request("v"), 1);
  EXPECT_EQ(more[0].build().key(), "only second");
  EXPECT_EQ(Call(Request("v", {Running(more[0])})).assignments_size(), 0);
  Call(Request("w", {Built(work[0], v1::OK, Upload("binary"))}));
  Call(Request("v", {Built(more[0], v1::OK, Upload("binary"))}));
  absl::StatusOr<std::vector<BuildOutcome>> a = first.get(), b = second.get();
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_FALSE(a->at(0).reused);
  EXPECT_TRUE(b->at(0).reused);
  EXPECT_FALSE(b->at(1).reused);
  EXPECT_EQ(a->at(0).result.binary(), b->at(0).result.binary());
}

TEST_F(DispatcherTest, ALostWorkersTaskIsGivenToAnotherAndTwoLostWorkersEndIt) {
  BuildFuture built = StartBuild(NewJob(), {HostBuild("once"), HostBuild("killer")});
  const std::vector<v1::Assignment> first = Take(Request("w1"), 2);
  clock_.Advance(std::chrono::seconds(16));
  const std::vector<v1::Assignment> second = Take(Request("w2"), 2);
  EXPECT_EQ(second[0].task(), first[0].task());
  EXPECT_EQ(second[0].fence(), first[0].fence() + 1);
  // The lost worker comes back with a result: it is not taken.
  EXPECT_THAT(Call(Request("w1", {Built(first[0], v1::COMPILE_ERROR)})).accepted(),
              ElementsAre(first[0].task()));
  EXPECT_EQ(store_->GetTask(first[0].task())->state, TaskState::kRunning);
  Call(Request("w2", {Built(second[0], v1::OK, Upload("binary")), Running(second[1])}));
  clock_.Advance(std::chrono::seconds(16));

  absl::StatusOr<std::vector<BuildOutcome>> outcomes = built.get();
  ASSERT_TRUE(outcomes.ok()) << outcomes.status();
  EXPECT_EQ(outcomes->at(0).result.outcome(), v1::OK);
  EXPECT_EQ(outcomes->at(1).result.outcome(), v1::WORKER_LOST);
  EXPECT_THAT(outcomes->at(1).result.log(), HasSubstr("2 workers were lost"));
}

TEST_F(DispatcherTest, AWorkerThatKeepsFailingIsReported) {
  BuildFuture built = StartBuild(NewJob(), {HostBuild("k")});
  for (int i = 0; i < 3; ++i) {
    const std::string worker = "w" + std::to_string(i);
    const std::vector<v1::Assignment> work = Take(Request(worker), 1);
    EXPECT_THAT(Call(Request(worker, {Failed(work[0], "no compiler")})).accepted(),
                ElementsAre(work[0].task()));
  }
  absl::StatusOr<std::vector<BuildOutcome>> outcomes = built.get();
  ASSERT_TRUE(outcomes.ok()) << outcomes.status();
  EXPECT_EQ(outcomes->at(0).result.outcome(), v1::WORKER_LOST);
  EXPECT_EQ(outcomes->at(0).result.log(),
            "given up: workers failed at it 3 times; the last one, w2: no compiler");

  // It is not known to be bad.
  EXPECT_TRUE(store_->FindBuilds({"k"})->empty());
  built = StartBuild(NewJob(), {HostBuild("k")});
  const std::vector<v1::Assignment> work = Take(Request("w3"), 1);
  Call(Request("w3", {Built(work[0], v1::OK, Upload("binary"))}));
  EXPECT_EQ(built.get()->at(0).result.outcome(), v1::OK);
}

TEST_F(DispatcherTest, CancellingReachesTheHolder) {
  CancellationToken token;
  BuildFuture built = StartBuild(NewJob(), {HostBuild("k")}, token);
  const std::vector<v1::Assignment> work = Take(Request("w"), 1);
  v1::SynchronizeRequest held = Request("w", {Running(work[0])});
  held.set_wait_seconds(60);
  std::future<v1::SynchronizeResponse> answer = Send(held);
  token.Cancel();
  EXPECT_TRUE(absl::IsCancelled(built.get().status()));
  EXPECT_THAT(answer.get().cancelled(), ElementsAre(work[0].task()));
  EXPECT_EQ(store_->GetTask(work[0].task())->state, TaskState::kCancelled);
  EXPECT_TRUE(absl::IsCancelled(dispatcher_->Build(NewJob(), {HostBuild("l")}, token).status()));
}

TEST_F(DispatcherTest, CancellingAJobEndsItsWaitingCallButNotThatOfAnother) {
  const std::string a = NewJob(), b = NewJob();
  BuildFuture build_a = StartBuild(a, {HostBuild("shared"), HostBuild("alone")});
  const std::vector<v1::Assignment> both = Take(Request("w"), 2);
  BuildFuture build_b = StartBuild(b, {HostBuild("shared"), HostBuild("other")});
  const std::vector<v1::Assignment> other = Take(Request("v"), 1);
  ASSERT_TRUE(dispatcher_->CancelJob(a).ok());
  EXPECT_TRUE(absl::IsCancelled(build_a.get().status()));
  EXPECT_EQ(store_->GetTask(both[0].task())->state, TaskState::kRunning);
  EXPECT_EQ(store_->GetTask(both[1].task())->state, TaskState::kCancelled);
  Call(Request("v", {Built(other[0], v1::COMPILE_ERROR)}));
  // w has lost contact; its shared task goes to v.
  clock_.Advance(std::chrono::seconds(16));
  const std::vector<v1::Assignment> shared = Take(Request("v"), 1);
  Call(Request("v", {Built(shared[0], v1::COMPILE_ERROR)}));
  EXPECT_TRUE(build_b.get().ok());
}

TEST_F(DispatcherTest, TimingsComeInTheOrderOfCompletion) {
  const std::string job = NewJob();
  std::vector<int> order;
  auto timed = std::async(std::launch::async, [&] {
    return dispatcher_->Time(job, {Timing("p0"), Timing("p1"), Timing("p2")}, CudaDevice(),
                             CancellationToken(), [&](int index, const v1::TimeResult& result, bool reused) {
                               EXPECT_FALSE(reused);
                               EXPECT_EQ(result.programs(0).cold().median(), index);
                               order.push_back(index);
                             });
  });
  v1::SynchronizeRequest request = Request("w", {}, {CudaDevice()});
  request.set_free_time_slots(3);
  std::vector<v1::Assignment> work = Take(request, 3);
  EXPECT_EQ(work[0].time().device_uuid(), "GPU-1");
  for (int i : {2, 0, 1}) {
    std::vector<v1::TaskReport> reports = {Timed(work[i], i)};
    EXPECT_EQ(work[i].time().programs(0).name(), "p" + std::to_string(i));
    Call(Request("w", reports, {CudaDevice()}));
  }
  ASSERT_TRUE(timed.get().ok());
  EXPECT_THAT(order, ElementsAre(2, 0, 1));
}

TEST_F(DispatcherTest, FinishedTimingsAreTakenFromTheStoreAfterARestartAndHeldOnesGoOn) {
  const std::string job = NewJob();
  const std::vector<v1::TimeTask> tasks = {Timing("p0"), Timing("p1")};
  auto timed = std::async(std::launch::async, [&] {
    return dispatcher_->Time(job, tasks, CudaDevice(), CancellationToken(),
                             [](int, const v1::TimeResult&, bool) {});
  });
  v1::SynchronizeRequest request = Request("w", {}, {CudaDevice()});
  request.set_free_time_slots(2);
  const std::vector<v1::Assignment> work = Take(request, 2);
  Call(Request("w", {Timed(work[0], 7), Running(work[1])}, {CudaDevice()}));
  dispatcher_->Stop();
  EXPECT_TRUE(absl::IsUnavailable(timed.get()));

  clock_.Advance(std::chrono::seconds(20));  // longer than a lease
  StartServer();
  std::map<int, bool> reused;
  timed = std::async(std::launch::async, [&] {
    return dispatcher_->Time(job, tasks, CudaDevice(), CancellationToken(),
                             [&](int index, const v1::TimeResult& result, bool was_known) {
                               EXPECT_EQ(result.programs(0).cold().median(), index == 0 ? 7 : 8);
                               reused[index] = was_known;
                             });
  });
  EXPECT_THAT(Call(Request("w", {Timed(work[1], 8)}, {CudaDevice()})).accepted(),
              ElementsAre(work[1].task()));
  ASSERT_TRUE(timed.get().ok());
  EXPECT_EQ(reused.size(), 2u);
  EXPECT_TRUE(reused[0]);
  EXPECT_EQ(store_->GetTask(work[1].task())->attempts, 1);
}

TEST_F(DispatcherTest, ATimingThatLosesItsWorkersSaysSoForEveryProgram) {
  const std::string job = NewJob();
  v1::TimeResult result;
  auto timed = std::async(std::launch::async, [&] {
    return dispatcher_->Time(job, {Timing("p0")}, CudaDevice(), CancellationToken(),
                             [&](int, const v1::TimeResult& given, bool) { result = given; });
  });
  for (int i = 0; i < 2; ++i) {
    Take(Request("w" + std::to_string(i), {}, {CudaDevice()}), 1);
    clock_.Advance(std::chrono::seconds(16));
  }
  ASSERT_TRUE(timed.get().ok());
  EXPECT_THAT(result.failure(), HasSubstr("workers were lost"));
  EXPECT_EQ(result.unfused().outcome(), v1::WORKER_LOST);
  ASSERT_EQ(result.programs_size(), 1);
  EXPECT_EQ(result.programs(0).name(), "p0");
  EXPECT_EQ(result.programs(0).outcome(), v1::WORKER_LOST);
}

TEST_F(DispatcherTest, TimingsOfTwoJobsAreDistinct) {
  EXPECT_NE(SpecOf("jobs/1", Timing("p"), CudaDevice()).key, SpecOf("jobs/2", Timing("p"), CudaDevice()).key);
  EXPECT_NE(SpecOf("jobs/1", Timing("p"), CudaDevice()).key, SpecOf("jobs/1", Timing("q"), CudaDevice()).key);
  EXPECT_NE(SpecOf("jobs/1", Timing("p"), CudaDevice()).key,
            SpecOf("jobs/1", Timing("p"), CudaDevice("GPU-2")).key);
  EXPECT_EQ(SpecOf("jobs/1", Timing("p"), CudaDevice()).key, SpecOf("jobs/1", Timing("p"), CudaDevice()).key);
}

TEST_F(DispatcherTest, StoppingLeavesTheQueueForTheNextProcess) {
  const std::string job = NewJob();
  BuildFuture built = StartBuild(job, {HostBuild("held"), HostBuild("queued")});
  v1::SynchronizeRequest request = Request("w");
  request.set_free_build_slots(1);
  const std::vector<v1::Assignment> held = Take(request, 1);
  dispatcher_->Stop();
  EXPECT_TRUE(absl::IsUnavailable(built.get().status()));
  EXPECT_TRUE(absl::IsUnavailable(dispatcher_->Build(job, {HostBuild("l")}, CancellationToken()).status()));

  StartServer();
  built = StartBuild(job, {HostBuild("held"), HostBuild("queued")});
  const std::vector<v1::Assignment> queued = Take(Request("w", {Running(held[0])}), 1);
  EXPECT_EQ(queued[0].build().key(), "queued");
  Call(Request("w", {Built(held[0], v1::COMPILE_ERROR), Built(queued[0], v1::COMPILE_ERROR)}));
  EXPECT_TRUE(built.get().ok());
}

TEST_F(DispatcherTest, AStartCancelsWhatNoUnfinishedJobWants) {
  const std::string job = NewJob();
  BuildFuture built = StartBuild(job, {HostBuild("k")});
  const std::vector<v1::Assignment> work = Take(Request("w"), 1);
  dispatcher_->Stop();
  built.get().IgnoreError();
  JobUpdate update;
  update.state = JobState::kCancelled;
  ASSERT_TRUE(store_->UpdateJob(job, update, clock_.Now()).ok());
  StartServer();
  EXPECT_THAT(Call(Request("w", {Running(work[0])})).cancelled(), ElementsAre(work[0].task()));
}

TEST_F(DispatcherTest, WithoutAWorkerThatCanTheCallGivesUpAndSaysWhatIsMissing) {
  options_.no_worker_patience = std::chrono::milliseconds(10);
  StartServer();
  Call(Request("alpha", {}, {HostDevice()}));
  v1::BuildTask task = HostBuild("k");
  task.set_target(v1::CUDA);
  task.set_arch("sm_90");
  const absl::Status status = dispatcher_->Build(NewJob(), {task}, CancellationToken()).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("no worker with a compiler for cuda sm_90"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("alpha (host x86-64-v4 Ryzen)"));
}

// A worker that says its version and builds nothing has no compiler, whatever its devices are.
TEST_F(DispatcherTest, AJobIsToldThatItWaitsForACompiler) {
  std::promise<std::string> told;
  std::atomic<int> times_told = 0;
  std::promise<void> ended;
  dispatcher_->OnWaiting(
      [&](const std::string& job, const std::string& what, std::chrono::milliseconds left) {
        if (what.empty()) return ended.set_value();
        EXPECT_GT(left.count(), 0);
        if (++times_told == 1) told.set_value(job + " " + what);
      });
  v1::SynchronizeRequest request = Request("alpha", {}, {HostDevice()});
  request.set_version("1");
  Call(request);
  const std::string job = NewJob();
  CancellationToken token;
  BuildFuture built = StartBuild(job, {HostBuild("k")}, token);
  EXPECT_THAT(told.get_future().get(),
              HasSubstr(job + " 1 task waits for a worker with a compiler for host"));
  EXPECT_EQ(built.wait_for(20 * options_.look_period), std::future_status::timeout);
  EXPECT_EQ(times_told, 1);
  token.Cancel();
  EXPECT_TRUE(absl::IsCancelled(built.get().status()));
  ended.get_future().get();
}

TEST_F(DispatcherTest, WithoutACompilerTheOnlyWorkerIsNotWaitedFor) {
  options_.only_worker_is_here = true;
  StartServer();
  v1::SynchronizeRequest request = Request("alpha", {}, {HostDevice()});
  request.set_version("1");
  Call(request);
  const absl::Status status = dispatcher_->Build(NewJob(), {HostBuild("k")}, CancellationToken()).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("without a compiler for host code"));
}

TEST_F(DispatcherTest, WhatWaitsLongerThanItsJobAllowsEndsTheJob) {
  JobRecord record;
  record.queue_limit = std::chrono::seconds(10);
  const std::string job = store_->CreateJob(record, clock_.Now())->job.id;
  v1::SynchronizeRequest request = Request("w");
  request.set_free_build_slots(1);
  BuildFuture built = StartBuild(job, {HostBuild("taken"), HostBuild("waits")});
  const std::vector<v1::Assignment> taken = Take(request, 1);
  clock_.Advance(std::chrono::seconds(9));
  EXPECT_EQ(built.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout)
      << "it may wait for ten";
  clock_.Advance(std::chrono::seconds(2));
  const absl::Status status = built.get().status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("no worker took it within the time that it may wait"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("w (host x86-64-v4 Ryzen)"));
  EXPECT_EQ(store_->GetTask(taken[0].task())->state, TaskState::kCancelled)
      << "its other tasks are not wanted";
}

TEST_F(DispatcherTest, CudaIsBuiltByAnyWorkerWithCudaAndHostCodeOnlyByItsArch) {
  v1::BuildTask cuda = HostBuild("cuda");
  cuda.set_target(v1::CUDA);
  cuda.set_arch("sm_80");
  BuildFuture built = StartBuild(NewJob(), {cuda, HostBuild("host")});
  v1::DeviceDescription other_arch = HostDevice();
  other_arch.set_arch("x86-64-v2");
  const std::vector<v1::Assignment> work =
      Take(Request("w", {}, {CudaDevice("GPU-1", "sm_90"), other_arch}), 1);
  ASSERT_EQ(work.size(), 1u);
  EXPECT_EQ(work[0].build().key(), "cuda");
  const std::vector<v1::Assignment> host = Take(Request("v"), 1);
  EXPECT_EQ(host[0].build().key(), "host");
  Call(Request("w", {Built(work[0], v1::COMPILE_ERROR)}));
  Call(Request("v", {Built(host[0], v1::COMPILE_ERROR)}));
  EXPECT_TRUE(built.get().ok());
}

TEST_F(DispatcherTest, NobodyWaitsForADeviceThatTheOnlyWorkerHasNot) {
  options_.only_worker_is_here = true;
  StartServer();
  // Longer than any test may take: what follows does not wait.
  const auto patience = std::chrono::hours(1);
  std::future<absl::StatusOr<v1::DeviceDescription>> before = std::async(std::launch::async, [&] {
    return dispatcher_->ChooseDevice(v1::CUDA, "", patience, CancellationToken());
  });
  EXPECT_EQ(before.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout)
      << "the worker may have one";
  Call(Request("here", {}, {HostDevice()}));
  const absl::Status status = before.get().status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("this machine has no cuda device; its worker: here (host"));
  CancellationToken token;
  EXPECT_TRUE(
      absl::IsUnavailable(dispatcher_->ChooseDevice(v1::HOST, "x86-64-v9", patience, token).status()));
  EXPECT_EQ(dispatcher_->ChooseDevice(v1::HOST, "", patience, token)->uuid(), "CPU-1");
}

// A job that says how long it may wait waits so long for a worker that does not come: longer than others, or
// less long.
TEST_F(DispatcherTest, WithoutAWorkerAJobWaitsAsLongAsItAllowsItself) {
  options_.no_worker_patience = std::chrono::milliseconds(10);
  StartServer();
  std::promise<std::pair<std::string, std::chrono::milliseconds>> told;
  dispatcher_->OnWaiting([&](const std::string&, const std::string& what, std::chrono::milliseconds left) {
    if (!what.empty()) told.set_value({what, left});
  });
  JobRecord record;
  record.queue_limit = std::chrono::seconds(3600);
  const std::string job = store_->CreateJob(record, clock_.Now())->job.id;
  BuildFuture built = StartBuild(job, {HostBuild("k")});
  const auto [what, left] = told.get_future().get();
  EXPECT_THAT(what, HasSubstr("for up to 3600 s"));
  EXPECT_EQ(left, std::chrono::seconds(3600));
  EXPECT_EQ(built.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  clock_.Advance(std::chrono::seconds(3601));
  const absl::Status status = built.get().status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("within the time that it may wait, 3600 s"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("no worker with a compiler for host"));
}

TEST_F(DispatcherTest, WhatAnotherJobHasQueuedForEverIsNotWaitedForLonger) {
  BuildFuture patient = StartBuild(NewJob(), {HostBuild("k")});
  AwaitLiveTasks(1);
  JobRecord record;
  record.queue_limit = std::chrono::milliseconds(20);
  const std::string job = store_->CreateJob(record, clock_.Now())->job.id;
  const absl::Status status = dispatcher_->Build(job, {HostBuild("k")}, CancellationToken()).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("no worker with a compiler for host"));
  EXPECT_EQ(patient.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  dispatcher_->Stop();
}

}  // namespace
}  // namespace fusion
