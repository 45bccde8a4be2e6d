// The conversation between a worker and the server.
#include "server/dispatch/synchronizer.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "tests/unit/dispatch/dispatch_fixture.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class SynchronizerTest : public DispatchTest {
 protected:
  void SetUp() override {
    DispatchTest::SetUp();
    job_ = NewJob();
  }
  // Queues builds as a job thread would, without waiting for them.
  void Queue(const std::vector<std::string>& keys) {
    std::vector<TaskSpec> specs;
    for (const std::string& key : keys) specs.push_back(SpecOf(HostBuild(key)));
    ASSERT_TRUE(dispatcher_->Enqueue(job_, specs).ok());
  }
  std::string job_;
};

TEST_F(SynchronizerTest, AnAnswerThatNeedNotWaitComesAtOnce) {
  v1::SynchronizeResponse idle = Call(Request("w"));
  EXPECT_THAT(idle.assignments(), IsEmpty());
  EXPECT_GT(idle.next_contact_seconds(), 0) << "a worker that is not held must pause by itself";
  Queue({"a", "b", "c"});
  v1::SynchronizeRequest request = Request("w");
  request.set_free_build_slots(2);
  request.set_wait_seconds(60);
  v1::SynchronizeResponse work = Call(request);
  EXPECT_EQ(work.assignments_size(), 2) << "no more than there is room for";
  EXPECT_EQ(work.next_contact_seconds(), 0);
}

TEST_F(SynchronizerTest, AHeldCallWakesWhenATaskIsQueued) {
  v1::SynchronizeRequest request = Request("w");
  request.set_wait_seconds(60);
  std::future<v1::SynchronizeResponse> answer = Send(request);
  BuildFuture built = StartBuild(job_, {HostBuild("k")});
  const v1::SynchronizeResponse work = answer.get();
  ASSERT_EQ(work.assignments_size(), 1);
  EXPECT_EQ(work.assignments(0).build().key(), "k");
  Call(Request("w", {Built(work.assignments(0), v1::COMPILE_ERROR)}));
  EXPECT_TRUE(built.get().ok());
}

TEST_F(SynchronizerTest, OneQueuedTaskWakesManyHeldCallsButGoesToOne) {
  std::vector<std::future<v1::SynchronizeResponse>> answers;
  for (int i = 0; i < 8; ++i) {
    v1::SynchronizeRequest request = Request("w" + std::to_string(i));
    request.set_wait_seconds(60);
    answers.push_back(Send(request));
  }
  BuildFuture built = StartBuild(job_, {HostBuild("k")});
  const auto answered = [&] {
    return std::any_of(answers.begin(), answers.end(),
                       [](const std::future<v1::SynchronizeResponse>& answer) {
                         return answer.wait_for(std::chrono::milliseconds(1)) == std::future_status::ready;
                       });
  };
  while (!answered()) continue;
  dispatcher_->Stop();
  int assigned = 0;
  for (auto& answer : answers) assigned += answer.get().assignments_size();
  EXPECT_EQ(assigned, 1);
  EXPECT_TRUE(absl::IsUnavailable(built.get().status()));
}

TEST_F(SynchronizerTest, AHeldCallIsAnsweredWhenItsTimeIsOver) {
  v1::SynchronizeRequest request = Request("w");
  request.set_wait_seconds(0.01);
  const v1::SynchronizeResponse answer = Call(request);
  EXPECT_THAT(answer.assignments(), IsEmpty());
  EXPECT_EQ(answer.next_contact_seconds(), 0);
}

TEST_F(SynchronizerTest, StoppingAnswersHeldCalls) {
  v1::SynchronizeRequest request = Request("w");
  request.set_wait_seconds(60);
  std::future<v1::SynchronizeResponse> answer = Send(request);
  dispatcher_->Stop();
  EXPECT_THAT(answer.get().assignments(), IsEmpty());
  EXPECT_GT(Call(request).next_contact_seconds(), 0);
}

TEST_F(SynchronizerTest, ANewerCallOfTheSameWorkerEndsTheOlder) {
  v1::SynchronizeRequest request = Request("w");
  request.set_wait_seconds(60);
  std::future<v1::SynchronizeResponse> older = Send(request);
  std::future<v1::SynchronizeResponse> newer = Send(request);
  EXPECT_THAT(older.get().assignments(), IsEmpty());
  BuildFuture built = StartBuild(job_, {HostBuild("k")});
  const v1::SynchronizeResponse work = newer.get();
  ASSERT_EQ(work.assignments_size(), 1);
  Call(Request("w", {Built(work.assignments(0), v1::COMPILE_ERROR)}));
  EXPECT_TRUE(built.get().ok());
}

TEST_F(SynchronizerTest, CallsRenewTheLeasesOfWhatTheyListAsRunning) {
  Queue({"k"});
  const v1::Assignment work = Call(Request("w")).assignments(0);
  for (int i = 0; i < 4; ++i) {
    clock_.Advance(std::chrono::seconds(10));
    EXPECT_THAT(Call(Request("w", {Running(work)})).cancelled(), IsEmpty());
    EXPECT_TRUE(store_->ExpireLeases(clock_.Now())->empty());
  }
  EXPECT_EQ(store_->GetTask(work.task())->attempts, 1);
}

TEST_F(SynchronizerTest, AnAssignmentThatWasLostOnTheWayIsSentAgainWithTheSameFence) {
  Queue({"k"});
  const v1::Assignment work = Call(Request("w")).assignments(0);
  for (int i = 0; i < 200; ++i) {
    const v1::SynchronizeResponse again = Call(Request("w"));
    ASSERT_EQ(again.assignments_size(), 1);
    EXPECT_EQ(again.assignments(0).task(), work.task());
    EXPECT_EQ(again.assignments(0).fence(), work.fence());
  }
  EXPECT_THAT(Call(Request("w")).assignments(), IsEmpty()) << "not for ever";
  EXPECT_EQ(store_->GetTask(work.task())->attempts, 1);
}

TEST_F(SynchronizerTest, AnAssignmentSentAgainTakesItsPlace) {
  Queue({"a", "b"});
  v1::SynchronizeRequest request = Request("w");
  request.set_free_build_slots(1);
  ASSERT_EQ(Call(request).assignments_size(), 1);
  EXPECT_EQ(Call(request).assignments_size(), 1) << "the one sent again, and no room for the other";
}

TEST_F(SynchronizerTest, ANewProcessHasLostWhatTheOldOneHeld) {
  Queue({"k"});
  const v1::Assignment work = Call(Request("w")).assignments(0);
  v1::SynchronizeRequest restarted = Request("w");
  restarted.set_instance("w process 2");
  const v1::SynchronizeResponse answer = Call(restarted);
  ASSERT_EQ(answer.assignments_size(), 1);
  EXPECT_EQ(answer.assignments(0).task(), work.task());
  EXPECT_EQ(answer.assignments(0).fence(), work.fence() + 1);
  EXPECT_EQ(store_->GetTask(work.task())->lost_workers, 1);
}

TEST_F(SynchronizerTest, AReplacedProcessIsToldToStop) {
  Queue({"k"});
  const v1::Assignment work = Call(Request("w")).assignments(0);
  v1::SynchronizeRequest newer = Request("w");
  newer.set_instance("w process 2");
  ASSERT_EQ(Call(newer).assignments_size(), 1);
  const v1::SynchronizeResponse old = Call(Request("w", {Running(work)}));
  EXPECT_TRUE(old.drain());
  EXPECT_THAT(old.cancelled(), ElementsAre(work.task()));
  EXPECT_THAT(old.assignments(), IsEmpty());
  EXPECT_EQ(store_->GetTask(work.task())->instance, "w process 2") << "the newer process keeps it";
}

TEST_F(SynchronizerTest, AResultIsAcceptedOnceAndRepeatingItIsHarmless) {
  Queue({"k"});
  const v1::Assignment work = Call(Request("w")).assignments(0);
  EXPECT_THAT(Call(Request("w", {Built(work, v1::COMPILE_ERROR)})).accepted(), ElementsAre(work.task()));
  const std::string stored = store_->GetTask(work.task())->result;
  EXPECT_THAT(Call(Request("w", {Built(work, v1::OK, Upload("x"))})).accepted(), ElementsAre(work.task()));
  EXPECT_EQ(store_->GetTask(work.task())->result, stored);
}

TEST_F(SynchronizerTest, ReportsOfUnknownTasksAreForgotten) {
  v1::Assignment unknown;
  unknown.set_task("tasks/of another store");
  unknown.set_fence(1);
  EXPECT_THAT(Call(Request("w", {Running(unknown)})).cancelled(), ElementsAre(unknown.task()));
  EXPECT_THAT(Call(Request("w", {Built(unknown, v1::OK)})).accepted(), ElementsAre(unknown.task()));
}

TEST_F(SynchronizerTest, ABinaryThatWasNotUploadedIsNoResult) {
  Queue({"k"});
  const v1::Assignment work = Call(Request("w")).assignments(0);
  Call(Request("w", {Built(work, v1::OK, "sha256:nothing")}));
  EXPECT_NE(store_->GetTask(work.task())->state, TaskState::kDone);
  EXPECT_TRUE(store_->FindBuilds({"k"})->empty());
  EXPECT_EQ(store_->GetTask(work.task())->failures, 1);
}

TEST_F(SynchronizerTest, AResultOfTheWrongKindIsNoResult) {
  Queue({"k"});
  const v1::Assignment work = Call(Request("w")).assignments(0);
  Call(Request("w", {Timed(work, 1)}));
  EXPECT_NE(store_->GetTask(work.task())->state, TaskState::kDone);
}

TEST_F(SynchronizerTest, ACancellationIsToldAgainButWakesOnlyOnce) {
  Queue({"k"});
  const v1::Assignment work = Call(Request("w")).assignments(0);
  ASSERT_TRUE(dispatcher_->CancelJob(job_).ok());
  v1::SynchronizeRequest request = Request("w", {Running(work)});
  request.set_wait_seconds(60);
  EXPECT_THAT(Call(request).cancelled(), ElementsAre(work.task())) << "at once";
  request.set_wait_seconds(0.01);
  EXPECT_THAT(Call(request).cancelled(), ElementsAre(work.task())) << "after the wait";
}

TEST_F(SynchronizerTest, ADrainedWorkerGetsNothingNewUntilItIsRestarted) {
  Call(Request("w"));
  v1::SynchronizeRequest held = Request("w");
  held.set_wait_seconds(60);
  std::future<v1::SynchronizeResponse> answer = Send(held);
  absl::StatusOr<v1::Worker> drained = dispatcher_->Drain("workers/w");
  ASSERT_TRUE(drained.ok()) << drained.status();
  EXPECT_TRUE(drained->draining());
  EXPECT_TRUE(answer.get().drain()) << "told at once";
  Queue({"k"});
  EXPECT_THAT(Call(Request("w")).assignments(), IsEmpty());

  StartServer();
  EXPECT_TRUE(Call(Request("w")).drain()) << "a restart of the server does not undo it";
  v1::SynchronizeRequest restarted = Request("w");
  restarted.set_instance("w process 2");
  const v1::SynchronizeResponse fresh = Call(restarted);
  EXPECT_FALSE(fresh.drain());
  EXPECT_EQ(fresh.assignments_size(), 1);
}

TEST_F(SynchronizerTest, DrainingAnUnknownWorkerIsNotFound) {
  Call(Request("w"));
  const absl::Status status = dispatcher_->Drain("workers/v").status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("known: workers/w"));
}

TEST_F(SynchronizerTest, ANamelessWorkerGetsNothing) {
  Queue({"k"});
  EXPECT_THAT(Call(Request("")).assignments(), IsEmpty());
  v1::SynchronizeRequest request = Request("w");
  request.clear_instance();
  EXPECT_THAT(Call(request).assignments(), IsEmpty());
}

TEST_F(SynchronizerTest, DevicesAreRemembered) {
  Call(Request("w", {}, {CudaDevice(), HostDevice()}));
  absl::StatusOr<std::vector<DeviceRecord>> devices = store_->Devices();
  ASSERT_TRUE(devices.ok()) << devices.status();
  ASSERT_EQ(devices->size(), 2u);
  EXPECT_EQ((*devices)[1].uuid, "GPU-1");
  EXPECT_EQ((*devices)[1].device_class, "H200");
  v1::DeviceDescription description;
  ASSERT_TRUE(description.ParseFromString((*devices)[1].description));
  EXPECT_EQ(description.arch(), "sm_90");
}

// Timings of two users on two GPUs of one worker. Nothing wakes calls from time to time.
class KeptLaneTest : public DispatchTest {
 protected:
  void SetUp() override {
    DispatchTest::SetUp();
    options_.expiry_period = std::chrono::hours(1);
    StartServer();
    hogs_job_ = JobOf("hog");
    bens_job_ = JobOf("ben");
  }
  std::string JobOf(const std::string& user) {
    return store_->CreateJob(JobRecord{.user = user}, clock_.Now())->job.id;
  }
  void Queue(const std::string& job, const std::string& program, const std::string& uuid) {
    ASSERT_TRUE(dispatcher_->Enqueue(job, {SpecOf(job, Timing(program), CudaDevice(uuid))}).ok());
  }
  v1::SynchronizeRequest Offer(const std::vector<std::string>& uuids,
                               const std::vector<v1::TaskReport>& reports = {}) {
    v1::SynchronizeRequest request = Request("w", reports, {CudaDevice("GPU-1"), CudaDevice("GPU-2")});
    for (const std::string& uuid : uuids) request.add_free_devices(uuid);
    request.set_free_time_slots(static_cast<int>(uuids.size()));
    return request;
  }
  // Has Ben's timing end on GPU-1, for which one of Hog's waits, who has had more and has GPU-2.
  void EndBens() {
    for (const char* program : {"h1", "h2"}) Queue(hogs_job_, program, "GPU-1");
    for (const char* program : {"h3", "h4"}) Queue(hogs_job_, program, "GPU-2");
    // One for each, though those of GPU-1 are older.
    const v1::SynchronizeResponse both = Call(Offer({"GPU-1", "GPU-2"}));
    ASSERT_EQ(both.assignments_size(), 2);
    ASSERT_EQ(both.assignments(0).time().device_uuid(), "GPU-1");
    Queue(bens_job_, "b1", "GPU-1");
    clock_.Advance(std::chrono::seconds(1));
    const v1::SynchronizeResponse bens =
        Call(Offer({"GPU-1"}, {Timed(both.assignments(0), 1), Running(both.assignments(1))}));
    ASSERT_EQ(bens.assignments_size(), 1);
    ASSERT_EQ(bens.assignments(0).time().programs(0).name(), "b1");
    const v1::SynchronizeResponse hogs =
        Call(Offer({"GPU-2"}, {Running(bens.assignments(0)), Timed(both.assignments(1), 1)}));
    ASSERT_EQ(hogs.assignments_size(), 1);
    const v1::SynchronizeResponse none =
        Call(Offer({"GPU-1"}, {Timed(bens.assignments(0), 1), Running(hogs.assignments(0))}));
    ASSERT_THAT(none.accepted(), ElementsAre(bens.assignments(0).task()));
    ASSERT_THAT(none.assignments(), IsEmpty());
    held_ = Offer({"GPU-1"}, {Running(hogs.assignments(0))});
    held_.set_wait_seconds(60);
  }
  std::string Answered(std::future<v1::SynchronizeResponse>& answer) {
    // Long before the call ends by itself.
    if (answer.wait_for(std::chrono::seconds(3)) != std::future_status::ready) return "nothing";
    const v1::SynchronizeResponse response = answer.get();
    return response.assignments_size() == 1 ? response.assignments(0).time().programs(0).name() : "";
  }

  std::string hogs_job_, bens_job_;
  v1::SynchronizeRequest held_;  // of the worker, with GPU-1 idle
};

TEST_F(KeptLaneTest, TheNextTimingOfTheJobComesFirst) {
  ASSERT_NO_FATAL_FAILURE(EndBens());
  std::future<v1::SynchronizeResponse> answer = Send(held_);
  Queue(bens_job_, "b2", "GPU-1");
  EXPECT_EQ(Answered(answer), "b2");
}

TEST_F(KeptLaneTest, AnotherIsGivenItWhenItIsKeptNoMore) {
  ASSERT_NO_FATAL_FAILURE(EndBens());
  std::future<v1::SynchronizeResponse> answer = Send(held_);
  clock_.Advance(ReadyQueue::kLongestKept);
  EXPECT_EQ(Answered(answer), "h2");
}

TEST_F(KeptLaneTest, AnotherIsGivenItWhenTheJobEnds) {
  ASSERT_NO_FATAL_FAILURE(EndBens());
  // The job's timings are bound to it.
  ASSERT_EQ(
      dispatcher_->ChooseDevice(v1::CUDA, "", std::chrono::milliseconds(0), CancellationToken(), bens_job_)
          ->uuid(),
      "GPU-1");
  // By the clock it would be kept for longer than is waited for here, so that nothing but the job's end wakes
  // the call.
  clock_.Advance(-std::chrono::seconds(4));
  std::future<v1::SynchronizeResponse> answer = Send(held_);
  EXPECT_EQ(answer.wait_for(std::chrono::milliseconds(200)), std::future_status::timeout);
  dispatcher_->JobEnded(bens_job_);
  EXPECT_EQ(Answered(answer), "h2");
}

TEST_F(KeptLaneTest, WithATimingThatIsSentAgainComesNoSecondOfItsDevice) {
  for (const char* program : {"h1", "h2"}) Queue(hogs_job_, program, "GPU-1");
  Queue(hogs_job_, "h3", "GPU-2");
  ASSERT_EQ(Call(Offer({"GPU-1"})).assignments_size(), 1);
  const v1::SynchronizeResponse answer = Call(Offer({"GPU-1", "GPU-2"}));
  ASSERT_EQ(answer.assignments_size(), 2);
  EXPECT_EQ(answer.assignments(0).time().programs(0).name(), "h1");
  EXPECT_EQ(answer.assignments(1).time().programs(0).name(), "h3") << "h2 is older";
}

}  // namespace
}  // namespace fusion
