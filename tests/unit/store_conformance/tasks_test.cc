#include <gmock/gmock.h>

#include "tests/unit/store_conformance/store_conformance.h"

namespace fusion {
namespace {

class TasksTest : public StoreConformanceTest {};

TEST_P(TasksTest, ANewTaskIsQueuedWithAllItsFields) {
  TaskSpec spec = Time("key", "GPU-1");
  spec.priority = 5;
  const TaskRecord task = Ensure(NewJob(), spec);
  Reopen();
  const TaskRecord read = Task(task.id);
  EXPECT_EQ(read.id.rfind("tasks/", 0), 0u);
  EXPECT_EQ(read.key, "key");
  EXPECT_EQ(read.kind, TaskKind::kTime);
  EXPECT_EQ(read.state, TaskState::kQueued);
  EXPECT_EQ(read.requirements.target, "CUDA");
  EXPECT_EQ(read.requirements.arch, "sm_90");
  EXPECT_EQ(read.requirements.device_uuid, "GPU-1");
  EXPECT_EQ(read.priority, 5);
  EXPECT_EQ(read.fence, 0);
  EXPECT_EQ(read.attempts, 0);
  EXPECT_EQ(read.payload, "session of key");
  EXPECT_EQ(read.created, At(10));
}

TEST_P(TasksTest, EqualWorkOfSeveralJobsIsOneTask) {
  const std::string a = NewJob(), b = NewJob();
  absl::StatusOr<std::vector<EnsuredTask>> first =
      store_->EnsureTasks(a, {Build("k"), Build("k"), Build("l")}, At(1));
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_EQ(first->size(), 3u);
  EXPECT_TRUE((*first)[0].created);
  EXPECT_FALSE((*first)[1].created);
  EXPECT_EQ((*first)[0].task.id, (*first)[1].task.id);
  EXPECT_NE((*first)[0].task.id, (*first)[2].task.id);

  ClaimBuilds("w", 1, At(2));
  absl::StatusOr<std::vector<EnsuredTask>> second = store_->EnsureTasks(b, {Build("k")}, At(3));
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_FALSE((*second)[0].created);
  EXPECT_EQ((*second)[0].task.id, (*first)[0].task.id);
  EXPECT_EQ((*second)[0].task.state, TaskState::kRunning);
}

TEST_P(TasksTest, AJobThatHasEndedOrIsUnknownTakesNoTasks) {
  const std::string job = NewJob();
  EndJob(job);
  EXPECT_TRUE(absl::IsFailedPrecondition(store_->EnsureTasks(job, {Build("k")}, At(3)).status()));
  EXPECT_TRUE(absl::IsNotFound(store_->EnsureTasks("jobs/none", {Build("k")}, At(3)).status()));
  EXPECT_TRUE(ClaimBuilds("w", 10, At(4)).empty());
}

TEST_P(TasksTest, DoneBuildsAreReusedByOtherJobsOnlyFromTheBuildCache) {
  const std::string a = NewJob(), b = NewJob();
  Ensure(a, Build("cached"));
  Ensure(a, Build("timed out"));
  const std::vector<TaskRecord> claimed = ClaimBuilds("w", 2, At(11));
  ASSERT_EQ(claimed.size(), 2u);
  const BuildRecord build{.key = "cached", .outcome = "COMPILE_ERROR", .log = "error: ..."};
  ASSERT_TRUE(*store_->CompleteTask({{claimed[0].id, claimed[0].fence}, "result", build}, At(12)));
  ASSERT_TRUE(*store_->CompleteTask({{claimed[1].id, claimed[1].fence}, "late"}, At(12)));

  EXPECT_EQ(Ensure(b, Build("cached")).id, claimed[0].id);
  EXPECT_EQ(Ensure(b, Build("cached")).result, "result");
  EXPECT_EQ(Ensure(a, Build("timed out")).id, claimed[1].id) << "a job keeps its own results";
  EXPECT_NE(Ensure(b, Build("timed out")).id, claimed[1].id) << "another job tries anew";
}

TEST_P(TasksTest, ADoneBuildWhoseBinaryIsGoneIsBuiltAgain) {
  const std::string a = NewJob(), b = NewJob();
  Ensure(a, Build("k"));
  const std::vector<TaskRecord> claimed = ClaimBuilds("w", 1, At(11));
  ASSERT_EQ(claimed.size(), 1u);
  const BuildRecord build{.key = "k", .outcome = "OK", .binary_digest = "sha256:missing"};
  ASSERT_TRUE(*store_->CompleteTask({{claimed[0].id, claimed[0].fence}, "result", build}, At(12)));
  EXPECT_EQ(Ensure(b, Build("k")).state, TaskState::kQueued);
}

TEST_P(TasksTest, FinishedTimingsOfTheSameJobAreKeptAcrossARestart) {
  const std::string job = NewJob();
  const TaskRecord task = Ensure(job, Time("t", "GPU-1"));
  const std::vector<TaskRecord> claimed = Claim("w", "1", TaskKind::kTime, 1, At(11));
  ASSERT_EQ(claimed.size(), 1u);
  ASSERT_TRUE(*store_->CompleteTask({{task.id, claimed[0].fence}, "times"}, At(12)));
  Reopen();
  const TaskRecord again = Ensure(job, Time("t", "GPU-1"));
  EXPECT_EQ(again.id, task.id);
  EXPECT_EQ(again.state, TaskState::kDone);
  EXPECT_EQ(again.result, "times");
  EXPECT_EQ(*store_->JobDevice(job), "GPU-1");
}

TEST_P(TasksTest, AJobWithoutTimingsHasNoDevice) { EXPECT_EQ(*store_->JobDevice(NewJob()), ""); }

TEST_P(TasksTest, CancellingAJobSparesWhatAnotherLiveJobWants) {
  const std::string a = NewJob(), b = NewJob(), ended = NewJob();
  const TaskRecord alone = Ensure(a, Build("alone")), shared = Ensure(a, Build("shared"));
  const TaskRecord half = Ensure(ended, Build("half"));
  Ensure(b, Build("shared"));
  Ensure(a, Build("half"));
  EndJob(ended);
  ASSERT_EQ(ClaimBuilds("w", 1, At(11)).front().id, alone.id);

  absl::StatusOr<std::vector<TaskRecord>> cancelled = store_->CancelJobTasks(a, At(12));
  ASSERT_TRUE(cancelled.ok()) << cancelled.status();
  ASSERT_EQ(cancelled->size(), 2u);
  EXPECT_EQ((*cancelled)[0].id, alone.id);
  EXPECT_EQ((*cancelled)[0].state, TaskState::kRunning) << "as it was, so that the holder can be told";
  EXPECT_EQ((*cancelled)[0].worker, "w");
  EXPECT_EQ((*cancelled)[1].id, half.id);
  EXPECT_EQ(Task(alone.id).state, TaskState::kCancelled);
  EXPECT_EQ(Task(half.id).state, TaskState::kCancelled);
  EXPECT_EQ(Task(shared.id).state, TaskState::kQueued);
}

TEST_P(TasksTest, CancelledWorkIsDoneAnewWhenItIsWantedAgain) {
  const std::string a = NewJob();
  const TaskRecord task = Ensure(a, Build("k"));
  ASSERT_TRUE(store_->CancelJobTasks(a, At(11)).ok());
  const TaskRecord again = Ensure(a, Build("k"));
  EXPECT_NE(again.id, task.id);
  EXPECT_EQ(again.state, TaskState::kQueued);
}

TEST_P(TasksTest, OrphansAreTasksThatNoUnfinishedJobWants) {
  const std::string ended = NewJob(), live = NewJob();
  const TaskRecord orphan = Ensure(ended, Build("orphan")), wanted = Ensure(live, Build("wanted"));
  EndJob(ended);
  absl::StatusOr<std::vector<TaskRecord>> cancelled = store_->CancelOrphanTasks(At(12));
  ASSERT_TRUE(cancelled.ok()) << cancelled.status();
  ASSERT_EQ(cancelled->size(), 1u);
  EXPECT_EQ(cancelled->front().id, orphan.id);
  EXPECT_EQ(Task(wanted.id).state, TaskState::kQueued);
}

TEST_P(TasksTest, DrainedWorkersAreRemembered) {
  ASSERT_TRUE(store_->SetDrained("alpha", "1").ok());
  ASSERT_TRUE(store_->SetDrained("alpha", "2").ok());
  Reopen();
  absl::StatusOr<std::map<std::string, std::string>> drained = store_->DrainedWorkers();
  ASSERT_TRUE(drained.ok()) << drained.status();
  EXPECT_THAT(*drained, ::testing::ElementsAre(::testing::Pair("alpha", "2")));
}

FOR_EVERY_STORE(TasksTest);

}  // namespace
}  // namespace fusion
