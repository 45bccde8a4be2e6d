#include <gmock/gmock.h>

#include <mutex>
#include <set>
#include <thread>

#include "tests/unit/store/store_fixture.h"

namespace fusion {
namespace {

class SqliteTaskClaimsTest : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
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

std::vector<std::string> Keys(const std::vector<TaskRecord>& tasks) {
  std::vector<std::string> keys;
  for (const TaskRecord& task : tasks) keys.push_back(task.key);
  return keys;
}

TEST_F(SqliteTaskClaimsTest, GivesByPriorityThenAge) {
  TaskSpec urgent = Build("urgent");
  urgent.priority = 1;
  ASSERT_TRUE(store_->EnsureTasks(job_, {Build("a"), Build("b"), urgent, Build("c")}, At(1)).ok());
  EXPECT_THAT(Keys(ClaimBuilds("w", 3, At(2))), ::testing::ElementsAre("urgent", "a", "b"));
  EXPECT_THAT(Keys(ClaimBuilds("w", 3, At(2))), ::testing::ElementsAre("c"));
  EXPECT_TRUE(ClaimBuilds("w", 3, At(2)).empty());
}

TEST_F(SqliteTaskClaimsTest, AClaimRaisesFenceAndAttempts) {
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

TEST_F(SqliteTaskClaimsTest, GivesOnlyWhatTheWorkerCanDo) {
  ASSERT_TRUE(
      store_
          ->EnsureTasks(job_,
                        {Build("host", "HOST", "x86-64"), Build("sm_90", "CUDA", "sm_90"),
                         Build("any host", "HOST", ""), Time("gpu 1", "GPU-1"), Time("gpu 2", "GPU-2")},
                        At(1))
          .ok());
  EXPECT_TRUE(Claim("w", "1", {}, TaskKind::kBuild, 9, At(2)).empty());
  EXPECT_THAT(Keys(Claim("w", "1", {{"HOST", "aarch64", ""}}, TaskKind::kBuild, 9, At(2))),
              ::testing::ElementsAre("any host"));
  EXPECT_THAT(Keys(Claim("w", "1", {{"CUDA", "", ""}}, TaskKind::kBuild, 9, At(2))),
              ::testing::ElementsAre("sm_90"));
  EXPECT_THAT(Keys(Claim("w", "1", {{"CUDA", "sm_90", "GPU-2"}}, TaskKind::kTime, 9, At(2))),
              ::testing::ElementsAre("gpu 2"));
  EXPECT_TRUE(Claim("w", "1", {{"CUDA", "sm_80", "GPU-1"}}, TaskKind::kTime, 9, At(2)).empty());
  EXPECT_THAT(Keys(Claim("w", "1", {{"HOST", "x86-64", "CPU"}, {"CUDA", "sm_90", "GPU-1"}}, TaskKind::kTime,
                         9, At(2))),
              ::testing::ElementsAre("gpu 1"));
  EXPECT_THAT(Keys(ClaimBuilds("w", 9, At(2))), ::testing::ElementsAre("host"));
}

TEST_F(SqliteTaskClaimsTest, OneDeviceTimesForOneWorkerAtATime) {
  ASSERT_TRUE(store_->EnsureTasks(job_, {Time("t1", "GPU-1"), Time("t2", "GPU-1")}, At(1)).ok());
  const std::vector<Capability> gpu = {{"CUDA", "sm_90", "GPU-1"}};
  const std::vector<TaskRecord> first = Claim("w1", "1", gpu, TaskKind::kTime, 1, At(2));
  ASSERT_EQ(first.size(), 1u);
  EXPECT_TRUE(Claim("w2", "1", gpu, TaskKind::kTime, 1, At(2)).empty());
  ASSERT_TRUE(*store_->CompleteTask({first[0].id, first[0].fence}, "r", nullptr, At(3)));
  EXPECT_EQ(Claim("w2", "1", gpu, TaskKind::kTime, 1, At(4)).size(), 1u);
}

TEST_F(SqliteTaskClaimsTest, ManyThreadsNeverClaimOneTaskTwice) {
  std::vector<TaskSpec> specs;
  for (int i = 0; i < 40; ++i) specs.push_back(Build("k" + std::to_string(i)));
  ASSERT_TRUE(store_->EnsureTasks(job_, specs, At(1)).ok());
  std::mutex mutex;
  std::multiset<std::string> claimed;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i) {
        for (const TaskRecord& task : ClaimBuilds("w" + std::to_string(t), 2, At(2))) {
          std::lock_guard<std::mutex> lock(mutex);
          claimed.insert(task.id);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(claimed.size(), 40u);
  EXPECT_EQ(std::set<std::string>(claimed.begin(), claimed.end()).size(), 40u);
}

TEST_F(SqliteTaskClaimsTest, AResultIsAcceptedExactlyOnce) {
  const TaskHold hold = Running("k", At(20));
  EXPECT_TRUE(*store_->CompleteTask(hold, "first", nullptr, At(21)));
  EXPECT_FALSE(*store_->CompleteTask(hold, "second", nullptr, At(22)));
  EXPECT_EQ(Task(hold.task).result, "first");
  EXPECT_EQ(Task(hold.task).state, TaskState::kDone);
}

TEST_F(SqliteTaskClaimsTest, AResultWithAnOldFenceIsRefusedWithEverythingThatBelongsToIt) {
  const TaskHold old = Running("k", At(20));
  ASSERT_EQ(store_->ExpireLeases(At(36))->size(), 1u);
  const BuildRecord build{.key = "k", .outcome = "COMPILE_ERROR"};
  EXPECT_FALSE(*store_->CompleteTask(old, "stale", &build, At(37))) << "queued: nobody holds it";
  const TaskRecord again = ClaimBuilds("v", 1, At(38)).front();
  EXPECT_EQ(again.fence, old.fence + 1);
  EXPECT_FALSE(*store_->CompleteTask(old, "stale", &build, At(39)));
  EXPECT_FALSE(*store_->ReleaseTask(old, "stale", At(39)));
  EXPECT_TRUE(store_->FindBuilds({"k"})->empty());
  EXPECT_EQ(Task(old.task).state, TaskState::kRunning);
  EXPECT_TRUE(*store_->CompleteTask({again.id, again.fence}, "fresh", &build, At(40)));
  EXPECT_EQ(Task(old.task).result, "fresh");
  EXPECT_EQ(store_->FindBuilds({"k"})->at("k").outcome, "COMPILE_ERROR");
}

TEST_F(SqliteTaskClaimsTest, ACancelledTaskTakesNoResult) {
  const TaskHold hold = Running("k", At(20));
  ASSERT_TRUE(store_->CancelJobTasks(job_, At(21)).ok());
  EXPECT_FALSE(*store_->CompleteTask(hold, "late", nullptr, At(22)));
  EXPECT_EQ(Task(hold.task).state, TaskState::kCancelled);
}

TEST_F(SqliteTaskClaimsTest, RenewedLeasesDoNotExpire) {
  const TaskHold hold = Running("k", At(20));
  EXPECT_TRUE(store_->RenewLeases({hold}, At(30), std::chrono::seconds(15))->empty());
  EXPECT_TRUE(store_->ExpireLeases(At(44))->empty());
  EXPECT_EQ(store_->ExpireLeases(At(46))->size(), 1u);
}

TEST_F(SqliteTaskClaimsTest, RenewingTellsWhatIsLost) {
  const TaskHold kept = Running("kept", At(20));
  const TaskHold done = Running("done", At(20));
  ASSERT_TRUE(*store_->CompleteTask(done, "r", nullptr, At(21)));
  absl::StatusOr<std::vector<TaskHold>> lost = store_->RenewLeases(
      {kept, done, {"tasks/none", 1}, {kept.task, kept.fence + 1}}, At(22), std::chrono::seconds(15));
  ASSERT_TRUE(lost.ok()) << lost.status();
  ASSERT_EQ(lost->size(), 3u);
  EXPECT_EQ((*lost)[0].task, done.task);
  EXPECT_EQ((*lost)[1].task, "tasks/none");
  EXPECT_EQ((*lost)[2].fence, kept.fence + 1);
}

TEST_F(SqliteTaskClaimsTest, ALostWorkersTaskIsRunAgainAndTwoLostWorkersEndIt) {
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

TEST_F(SqliteTaskClaimsTest, ANewProcessOfAWorkerHasLostWhatTheOldOneHeld) {
  const TaskHold hold = Running("k", At(20));
  EXPECT_TRUE(store_->LoseTasks("w", "1", At(21))->empty()) << "the same process";
  EXPECT_TRUE(store_->LoseTasks("other", "2", At(21))->empty());
  const std::vector<TaskRecord> lost = *store_->LoseTasks("w", "2", At(21));
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_EQ(lost[0].id, hold.task);
  EXPECT_EQ(Task(hold.task).state, TaskState::kQueued);
  EXPECT_EQ(Task(hold.task).lost_workers, 1);
}

TEST_F(SqliteTaskClaimsTest, AWorkersOwnFailureGivesTheTaskToOthersFirst) {
  const TaskHold hold = Running("k", At(20), "broken");
  ASSERT_TRUE(*store_->ReleaseTask(hold, "no compiler", At(21)));
  EXPECT_EQ(Task(hold.task).state, TaskState::kQueued);
  EXPECT_EQ(Task(hold.task).lost_workers, 0);
  EXPECT_EQ(Task(hold.task).failure_message, "no compiler");
  EXPECT_TRUE(ClaimBuilds("broken", 1, At(22)).empty()) << "it must wait";
  EXPECT_EQ(ClaimBuilds("other", 1, At(22)).size(), 1u);
}

TEST_F(SqliteTaskClaimsTest, AfterThreeFailuresOfWorkersATaskIsGivenUp) {
  const TaskRecord task = Ensure(job_, Build("k"));
  for (int i = 1; i <= 3; ++i) {
    const std::vector<TaskRecord> claimed = ClaimBuilds("w", 1, At(20 * i));
    ASSERT_EQ(claimed.size(), 1u) << "attempt " << i;
    ASSERT_TRUE(*store_->ReleaseTask({task.id, claimed[0].fence}, "no compiler", At(20 * i + 1)));
    EXPECT_EQ(Task(task.id).state, i < 3 ? TaskState::kQueued : TaskState::kFailed);
  }
  EXPECT_EQ(Task(task.id).failure, TaskFailure::kWorkerFailed);
}

TEST_F(SqliteTaskClaimsTest, ARestartedServerGivesHoldersTimeWithoutCountingAnAttempt) {
  const TaskHold hold = Running("k", At(20));
  Reopen();
  EXPECT_EQ(*store_->AdoptRunning(At(100), std::chrono::seconds(30)), 1);
  EXPECT_TRUE(store_->ExpireLeases(At(129))->empty());
  const std::vector<TaskRecord> held = *store_->HeldTasks("w", "1");
  ASSERT_EQ(held.size(), 1u);
  EXPECT_EQ(held[0].id, hold.task);
  EXPECT_EQ(held[0].attempts, 1);
  EXPECT_EQ(held[0].lost_workers, 0);
  EXPECT_TRUE(*store_->CompleteTask(hold, "result", nullptr, At(129)));
}

TEST_F(SqliteTaskClaimsTest, ReconnectingDoesNotShortenTheGrace) {
  const TaskHold hold = Running("k", At(20));
  ASSERT_TRUE(store_->AdoptRunning(At(100), std::chrono::seconds(30)).ok());
  ASSERT_TRUE(store_->RenewLeases({hold}, At(101), std::chrono::seconds(15))->empty());
  EXPECT_EQ(Task(hold.task).lease_until, At(130));
}

}  // namespace
}  // namespace fusion
