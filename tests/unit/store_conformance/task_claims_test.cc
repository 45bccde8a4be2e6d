#include <gmock/gmock.h>

#include <mutex>
#include <set>
#include <thread>

#include "tests/unit/store_conformance/store_conformance.h"

namespace fusion {
namespace {

class TaskClaimsTest : public StoreConformanceTest {
 protected:
  void SetUp() override {
    StoreConformanceTest::SetUp();
    job_ = NewJob();
  }
  // Queues and claims one host build at time `now`.
  TaskHold Running(const std::string& key, Timestamp now, const std::string& worker = "w") {
    const TaskRecord task = Ensure(job_, Build(key));
    const std::vector<TaskRecord> claimed = ClaimBuilds(worker, 1, now);
    EXPECT_EQ(claimed.size(), 1u);
    EXPECT_EQ(claimed.empty() ? "" : claimed[0].id, task.id);
    return TaskHold{task.id, claimed.empty() ? 0 : claimed[0].fence};
  }
  std::string job_;
};

TEST_P(TaskClaimsTest, AClaimRaisesFenceAndAttempts) {
  const TaskRecord task = Ensure(job_, Build("k"));
  const TaskRecord claimed = ClaimBuilds("alpha", 1, At(20), "process 7").front();
  EXPECT_EQ(claimed.id, task.id);
  EXPECT_EQ(claimed.state, TaskState::kRunning);
  EXPECT_EQ(claimed.fence, 1);
  EXPECT_EQ(claimed.attempts, 1);
  EXPECT_EQ(claimed.worker, "alpha");
  EXPECT_EQ(claimed.instance, "process 7");
  EXPECT_EQ(claimed.lease_until, At(35));
  EXPECT_EQ(claimed.payload, "source of k");
}

TEST_P(TaskClaimsTest, TasksHaveTheUserPriorityAndLimitOfTheirJob) {
  JobRecord job;
  job.user = "ada";
  job.priority = 7;
  job.queue_limit = std::chrono::seconds(30);
  const std::string id = store_->CreateJob(job, At(1))->job.id;
  TaskSpec spec = Build("k");
  spec.priority = 2;
  spec.avoid_worker = "gpu7";
  const TaskRecord task = Task(Ensure(id, spec).id);
  EXPECT_EQ(task.user, "ada");
  EXPECT_EQ(task.priority, 9);
  EXPECT_EQ(task.avoid_worker, "gpu7");
  EXPECT_EQ(task.queue_until, At(40));
  EXPECT_EQ(Task(Ensure(job_, Build("free")).id).queue_until, Timestamp());
}

TEST_P(TaskClaimsTest, OnlyQueuedTasksAreClaimedOrGivenUp) {
  const TaskHold running = Running("k", At(20));
  const TaskRecord queued = Ensure(job_, Build("q"));
  const auto lease = std::chrono::seconds(15);
  EXPECT_TRUE(store_->ClaimTasks({running.task, "tasks/none"}, "v", "1", At(21), lease)->empty());
  const std::vector<TaskRecord> failed =
      *store_->FailQueuedTasks({running.task, queued.id, "tasks/none"}, "too long", At(22));
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(Task(queued.id).state, TaskState::kFailed);
  EXPECT_EQ(Task(queued.id).failure, TaskFailure::kQueueTimeout);
  EXPECT_EQ(Task(queued.id).failure_message, "too long");
  EXPECT_EQ(Task(running.task).state, TaskState::kRunning);
}

TEST_P(TaskClaimsTest, NoRenewalHoldsATaskBeyondTheEndOfItsClaim) {
  TaskSpec spec = Build("k");
  spec.hold = std::chrono::seconds(40);
  Ensure(job_, spec);
  const TaskRecord claimed = ClaimBuilds("w", 1, At(100)).front();
  EXPECT_EQ(claimed.hold_until, At(140));
  const std::vector<TaskHold> holds = {{claimed.id, claimed.fence}};
  const auto lease = std::chrono::seconds(15);
  for (int second = 105; second <= 135; second += 5)
    EXPECT_TRUE(store_->RenewLeases(holds, At(second), lease)->empty());
  EXPECT_EQ(Task(claimed.id).lease_until, At(140));
  EXPECT_TRUE(store_->ExpireLeases(At(140))->empty());
  EXPECT_EQ(store_->ExpireLeases(At(141))->size(), 1u);
  EXPECT_EQ(Task(claimed.id).state, TaskState::kQueued);
}

TEST_P(TaskClaimsTest, LiveTasksAreInOrderAndWithoutTheirWork) {
  const TaskHold running = Running("a", At(20));
  ASSERT_TRUE(*store_->CompleteTask({Running("c", At(21)), "r"}, At(22)));
  const TaskRecord queued = Ensure(job_, Build("b"));
  const std::vector<TaskRecord> live = *store_->LiveTasks();
  ASSERT_EQ(live.size(), 2u);
  EXPECT_EQ(live[0].id, running.task);
  EXPECT_EQ(live[0].state, TaskState::kRunning);
  EXPECT_EQ(live[1].id, queued.id);
  EXPECT_LT(live[0].number, live[1].number);
  EXPECT_EQ(live[0].payload, "");
  EXPECT_EQ(Task(running.task).payload, "source of a");
}

TEST_P(TaskClaimsTest, ManyThreadsNeverClaimOneTaskTwice) {
  std::vector<TaskSpec> specs;
  for (int i = 0; i < 40; ++i) specs.push_back(Build("k" + std::to_string(i)));
  ASSERT_TRUE(store_->EnsureTasks(job_, specs, At(1)).ok());
  std::mutex mutex;
  std::multiset<std::string> claimed;
  std::vector<std::string> ids;
  const absl::StatusOr<std::vector<TaskRecord>> live = store_->LiveTasks();
  ASSERT_TRUE(live.ok()) << live.status();
  for (const TaskRecord& task : *live) ids.push_back(task.id);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      // Each wants every task, in an order of its own.
      for (size_t i = 0; i < ids.size(); ++i) {
        const std::string& id = ids[(i * 7 + 11 * t) % ids.size()];
        absl::StatusOr<std::vector<TaskRecord>> mine =
            store_->ClaimTasks({id}, "w" + std::to_string(t), "1", At(2), std::chrono::seconds(15));
        ASSERT_TRUE(mine.ok()) << mine.status();
        std::lock_guard<std::mutex> lock(mutex);
        for (const TaskRecord& task : *mine) claimed.insert(task.id);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(claimed.size(), 40u);
  EXPECT_EQ(std::set<std::string>(claimed.begin(), claimed.end()).size(), 40u);
}

TEST_P(TaskClaimsTest, AResultIsAcceptedExactlyOnce) {
  const TaskHold hold = Running("k", At(20));
  EXPECT_TRUE(*store_->CompleteTask({hold, "first"}, At(21)));
  EXPECT_FALSE(*store_->CompleteTask({hold, "second"}, At(22)));
  EXPECT_EQ(Task(hold.task).result, "first");
  EXPECT_EQ(Task(hold.task).state, TaskState::kDone);
}

TEST_P(TaskClaimsTest, ResultsOfSeveralTasksAreOneChange) {
  const TaskHold a = Running("a", At(20)), b = Running("b", At(20)), c = Running("c", At(20));
  const BuildRecord build{.key = "b", .outcome = "COMPILE_ERROR"};
  const absl::StatusOr<std::vector<bool>> completed = store_->CompleteTasks(
      {{a, "of a"}, {{c.task, c.fence + 1}, "of another fence"}, {b, "of b", build}, {b, "again"}}, At(21));
  ASSERT_TRUE(completed.ok()) << completed.status();
  EXPECT_EQ(*completed, (std::vector<bool>{true, false, true, false}));
  EXPECT_EQ(Task(b.task).result, "of b");
  EXPECT_EQ(Task(c.task).state, TaskState::kRunning);
  EXPECT_EQ(store_->FindBuilds({"b"})->size(), 1u);
  const std::vector<TaskRecord> tasks = *store_->GetTasks({b.task, "tasks/none", c.task});
  ASSERT_EQ(tasks.size(), 2u);
  EXPECT_EQ(tasks[0].result, "of b");
  EXPECT_EQ(tasks[0].payload, "") << "it is done";
  EXPECT_EQ(tasks[1].payload, "source of c");
}

TEST_P(TaskClaimsTest, AResultWithAnOldFenceIsRefusedWithEverythingThatBelongsToIt) {
  const TaskHold old = Running("k", At(20));
  ASSERT_EQ(store_->ExpireLeases(At(36))->size(), 1u);
  const BuildRecord build{.key = "k", .outcome = "COMPILE_ERROR"};
  EXPECT_FALSE(*store_->CompleteTask({old, "stale", build}, At(37))) << "queued: nobody holds it";
  const TaskRecord again = ClaimBuilds("v", 1, At(38)).front();
  EXPECT_EQ(again.fence, old.fence + 1);
  EXPECT_FALSE(*store_->CompleteTask({old, "stale", build}, At(39)));
  EXPECT_FALSE(store_->ReleaseTask(old, "stale", At(39))->has_value());
  EXPECT_TRUE(store_->FindBuilds({"k"})->empty());
  EXPECT_EQ(Task(old.task).state, TaskState::kRunning);
  EXPECT_TRUE(*store_->CompleteTask({{again.id, again.fence}, "fresh", build}, At(40)));
  EXPECT_EQ(Task(old.task).result, "fresh");
  EXPECT_EQ(store_->FindBuilds({"k"})->at("k").outcome, "COMPILE_ERROR");
}

TEST_P(TaskClaimsTest, ACancelledTaskTakesNoResult) {
  const TaskHold hold = Running("k", At(20));
  ASSERT_TRUE(store_->CancelJobTasks(job_, At(21)).ok());
  EXPECT_FALSE(*store_->CompleteTask({hold, "late"}, At(22)));
  EXPECT_EQ(Task(hold.task).state, TaskState::kCancelled);
}

TEST_P(TaskClaimsTest, RenewedLeasesDoNotExpire) {
  const TaskHold hold = Running("k", At(20));
  EXPECT_TRUE(store_->RenewLeases({hold}, At(30), std::chrono::seconds(15))->empty());
  EXPECT_TRUE(store_->ExpireLeases(At(44))->empty());
  EXPECT_EQ(store_->ExpireLeases(At(46))->size(), 1u);
}

TEST_P(TaskClaimsTest, RenewingTellsWhatIsLost) {
  const TaskHold kept = Running("kept", At(20));
  const TaskHold done = Running("done", At(20));
  ASSERT_TRUE(*store_->CompleteTask({done, "r"}, At(21)));
  absl::StatusOr<std::vector<TaskHold>> lost = store_->RenewLeases(
      {kept, done, {"tasks/none", 1}, {kept.task, kept.fence + 1}}, At(22), std::chrono::seconds(15));
  ASSERT_TRUE(lost.ok()) << lost.status();
  ASSERT_EQ(lost->size(), 3u);
  EXPECT_EQ((*lost)[0].task, done.task);
  EXPECT_EQ((*lost)[1].task, "tasks/none");
  EXPECT_EQ((*lost)[2].fence, kept.fence + 1);
}

TEST_P(TaskClaimsTest, ALostWorkersTaskIsRunAgainAndTwoLostWorkersEndIt) {
  const TaskHold hold = Running("k", At(20));
  std::vector<TaskRecord> lost = *store_->ExpireLeases(At(36));
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_EQ(lost[0].state, TaskState::kQueued);
  EXPECT_EQ(lost[0].lost_workers, 1);
  ASSERT_EQ(ClaimBuilds("v", 1, At(40)).size(), 1u);
  lost = *store_->ExpireLeases(At(56));
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_EQ(lost[0].state, TaskState::kFailed);
  const TaskRecord ended = Task(hold.task);
  EXPECT_EQ(ended.state, TaskState::kFailed);
  EXPECT_EQ(ended.failure, TaskFailure::kWorkerLost);
  EXPECT_EQ(ended.lost_workers, 2);
  EXPECT_THAT(ended.failure_message, ::testing::HasSubstr("2 workers were lost"));
  EXPECT_TRUE(ClaimBuilds("u", 9, At(60)).empty());

  EXPECT_EQ(Ensure(job_, Build("k")).id, hold.task) << "the job does not lose more workers to it";
  EXPECT_NE(Ensure(NewJob(), Build("k")).id, hold.task) << "another job tries anew";
}

TEST_P(TaskClaimsTest, ANewProcessOfAWorkerHasLostWhatTheOldOneHeld) {
  const TaskHold hold = Running("k", At(20));
  EXPECT_TRUE(store_->LoseTasks("w", "1", At(21))->empty()) << "the same process";
  EXPECT_TRUE(store_->LoseTasks("other", "2", At(21))->empty());
  const std::vector<TaskRecord> lost = *store_->LoseTasks("w", "2", At(21));
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_EQ(lost[0].id, hold.task);
  EXPECT_EQ(Task(hold.task).state, TaskState::kQueued);
  EXPECT_EQ(Task(hold.task).lost_workers, 1);
}

TEST_P(TaskClaimsTest, AWorkersOwnFailureGivesTheTaskToOthersFirst) {
  const TaskHold hold = Running("k", At(20), "broken");
  ASSERT_TRUE(store_->ReleaseTask(hold, "no compiler", At(21))->has_value());
  EXPECT_EQ(Task(hold.task).state, TaskState::kQueued);
  EXPECT_EQ(Task(hold.task).lost_workers, 0);
  EXPECT_EQ(Task(hold.task).failure_message, "no compiler");
  EXPECT_EQ(Task(hold.task).worker, "broken");
  EXPECT_EQ(Task(hold.task).not_before, At(23)) << "the worker must wait two seconds";
  const TaskRecord again = ClaimBuilds("broken", 1, At(30)).front();
  ASSERT_TRUE(store_->ReleaseTask({again.id, again.fence}, "no compiler", At(31))->has_value());
  EXPECT_EQ(Task(hold.task).not_before, At(35)) << "and then four";
}

TEST_P(TaskClaimsTest, AfterThreeFailuresOfWorkersATaskIsGivenUp) {
  const TaskRecord task = Ensure(job_, Build("k"));
  for (int i = 1; i <= 3; ++i) {
    const std::vector<TaskRecord> claimed = ClaimBuilds("w", 1, At(20 * i));
    ASSERT_EQ(claimed.size(), 1u) << "attempt " << i;
    ASSERT_TRUE(store_->ReleaseTask({task.id, claimed[0].fence}, "no compiler", At(20 * i + 1))->has_value());
    EXPECT_EQ(Task(task.id).state, i < 3 ? TaskState::kQueued : TaskState::kFailed);
  }
  EXPECT_EQ(Task(task.id).failure, TaskFailure::kWorkerFailed);
}

TEST_P(TaskClaimsTest, ARestartedServerGivesHoldersTimeWithoutCountingAnAttempt) {
  const TaskHold hold = Running("k", At(20));
  Reopen();
  EXPECT_EQ(*store_->AdoptRunning(At(100), std::chrono::seconds(30)), 1);
  EXPECT_TRUE(store_->ExpireLeases(At(129))->empty());
  const std::vector<TaskRecord> held = *store_->LiveTasks();
  ASSERT_EQ(held.size(), 1u);
  EXPECT_EQ(held[0].state, TaskState::kRunning);
  EXPECT_EQ(held[0].instance, "1");
  EXPECT_EQ(held[0].id, hold.task);
  EXPECT_EQ(held[0].attempts, 1);
  EXPECT_EQ(held[0].lost_workers, 0);
  EXPECT_TRUE(*store_->CompleteTask({hold, "result"}, At(129)));
}

// The clock was an hour ahead when the worker failed, is right since a restart, and the worker, the only one
// with the device, is lost.
TEST_P(TaskClaimsTest, ARestartForgetsUntilWhenRunningTasksWouldHaveWaited) {
  const TaskHold failed = Running("k", At(3600));
  ASSERT_TRUE(store_->ReleaseTask(failed, "no compiler today", At(3600))->has_value());
  const TaskHold again{failed.task, ClaimBuilds("w", 1, At(3603)).front().fence};
  EXPECT_GT(Task(again.task).not_before, At(3600));
  ASSERT_TRUE(store_->AdoptRunning(At(100), std::chrono::seconds(30)).ok());
  ASSERT_EQ(store_->ExpireLeases(At(131))->size(), 1u);
  EXPECT_EQ(Task(again.task).state, TaskState::kQueued);
  EXPECT_EQ(Task(again.task).not_before, Timestamp());
}

TEST_P(TaskClaimsTest, ReconnectingDoesNotShortenTheGrace) {
  const TaskHold hold = Running("k", At(20));
  ASSERT_TRUE(store_->AdoptRunning(At(100), std::chrono::seconds(30)).ok());
  ASSERT_TRUE(store_->RenewLeases({hold}, At(101), std::chrono::seconds(15))->empty());
  EXPECT_EQ(Task(hold.task).lease_until, At(130));
}

FOR_EVERY_STORE(TaskClaimsTest);

}  // namespace
}  // namespace fusion
