// Every way in which a task changes hands is an attempt, or the end of one.
#include <gmock/gmock.h>

#include "tests/unit/store_conformance/store_conformance.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class AttemptsTest : public StoreConformanceTest {
 protected:
  void SetUp() override {
    StoreConformanceTest::SetUp();
    job_ = NewJob();
  }
  JobTraceRecord Trace(const std::string& job) {
    auto trace = store_->JobTrace(job);
    EXPECT_TRUE(trace.ok()) << trace.status();
    return trace.value_or(JobTraceRecord{});
  }
  std::vector<AttemptRecord> Attempts() {
    const JobTraceRecord trace = Trace(job_);
    EXPECT_EQ(trace.tasks.size(), 1u);
    return trace.tasks.empty() ? std::vector<AttemptRecord>() : trace.tasks[0].attempts;
  }
  TaskHold Claimed(Timestamp now, const std::string& worker = "w", const std::string& instance = "1") {
    const std::vector<TaskRecord> claimed = ClaimBuilds(worker, 1, now, instance);
    EXPECT_EQ(claimed.size(), 1u);
    return claimed.empty() ? TaskHold{} : TaskHold{claimed[0].id, claimed[0].fence};
  }
  // How attempts ended, in the order of their claims.
  std::vector<std::string> Ends() {
    std::vector<std::string> ends;
    for (const AttemptRecord& attempt : Attempts()) ends.push_back(attempt.ended_how);
    return ends;
  }
  std::string job_;
};

TEST_P(AttemptsTest, AClaimIsAnAttemptThatRuns) {
  const TaskRecord task = Ensure(job_, Build("k"));
  EXPECT_THAT(Attempts(), IsEmpty());
  Claimed(At(20), "alpha", "process 7");
  const AttemptRecord attempt = Attempts().at(0);
  EXPECT_EQ(attempt.task, task.id);
  EXPECT_EQ(attempt.kind, TaskKind::kBuild);
  EXPECT_EQ(attempt.fence, 1);
  EXPECT_EQ(attempt.worker, "alpha");
  EXPECT_EQ(attempt.instance, "process 7");
  EXPECT_EQ(attempt.queued, At(10));
  EXPECT_EQ(attempt.claimed, At(20));
  EXPECT_EQ(attempt.ended, Timestamp());
  EXPECT_EQ(attempt.ended_how, "");
  EXPECT_EQ(attempt.ended_order, 0);
}

TEST_P(AttemptsTest, ResultsEndTheirAttempt) {
  Ensure(job_, Build("k"));
  const TaskHold hold = Claimed(At(20));
  ASSERT_TRUE(store_->CompleteTask({hold, "result"}, At(30)).value());
  EXPECT_THAT(Ends(), ElementsAre("DONE"));
  EXPECT_EQ(Attempts()[0].ended, At(30));
  EXPECT_FALSE(store_->CompleteTask({hold, "again"}, At(40)).value());
  EXPECT_EQ(Attempts()[0].ended, At(30)) << "a result that is not taken ends nothing";
}

TEST_P(AttemptsTest, EveryEndSaysHow) {
  Ensure(job_, Build("k"));
  ASSERT_TRUE(store_->ReleaseTask(Claimed(At(20), "failing"), "no compiler", At(21)).value());
  Claimed(At(30), "silent");
  ASSERT_EQ(store_->ExpireLeases(At(46)).value().size(), 1u);
  Claimed(At(50), "restarted", "1");
  ASSERT_EQ(store_->LoseTasks("restarted", "2", At(51)).value().size(), 1u);
  EXPECT_THAT(Ends(), ElementsAre("WORKER_FAILED", "LEASE_EXPIRED", "WORKER_GONE"));
  const std::vector<AttemptRecord> attempts = Attempts();
  EXPECT_EQ(attempts[1].queued, At(21)) << "it has waited since the last attempt ended";
  EXPECT_EQ(attempts[2].queued, At(46));
  EXPECT_EQ(attempts[2].fence, 3);
  EXPECT_EQ(Trace(job_).tasks[0].state, TaskState::kFailed);
  EXPECT_THAT(Trace(job_).tasks[0].failure_message, ::testing::HasSubstr("restarted"));
}

TEST_P(AttemptsTest, CancelledWhileItRuns) {
  Ensure(job_, Build("k"));
  Claimed(At(20));
  ASSERT_TRUE(store_->CancelJobTasks(job_, At(25)).ok());
  EXPECT_THAT(Ends(), ElementsAre("CANCELLED"));
  EXPECT_EQ(Attempts()[0].ended, At(25));
}

TEST_P(AttemptsTest, RenewedLeasesAndARestartEndNothing) {
  Ensure(job_, Build("k"));
  const TaskHold hold = Claimed(At(20));
  ASSERT_TRUE(store_->RenewLeases({hold}, At(30), std::chrono::seconds(15)).ok());
  Reopen();
  ASSERT_EQ(store_->AdoptRunning(At(40), std::chrono::seconds(30)).value(), 1);
  EXPECT_THAT(Ends(), ElementsAre(""));
}

TEST_P(AttemptsTest, WhatHappenedSinceOneLooked) {
  Ensure(job_, Build("a"));
  Ensure(job_, Build("b"));
  const auto none = store_->LastAttempts().value();
  EXPECT_EQ(none, (std::pair<int64_t, int64_t>(0, 0)));
  const TaskHold a = Claimed(At(20)), b = Claimed(At(21));
  ASSERT_TRUE(store_->CompleteTask({b, ""}, At(22)).value());
  ASSERT_TRUE(store_->CompleteTask({a, ""}, At(23)).value());
  const auto tasks = [](const absl::StatusOr<std::vector<AttemptRecord>>& attempts) {
    std::vector<std::string> ids;
    for (const AttemptRecord& attempt : *attempts) ids.push_back(attempt.task);
    return ids;
  };
  EXPECT_THAT(tasks(store_->ClaimsAfter(0, 10)), ElementsAre(a.task, b.task));
  EXPECT_THAT(tasks(store_->EndsAfter(0, 10)), ElementsAre(b.task, a.task));
  EXPECT_THAT(tasks(store_->EndsAfter(0, 1)), ElementsAre(b.task));
  EXPECT_THAT(tasks(store_->EndsAfter(1, 10)), ElementsAre(a.task));
  EXPECT_EQ(store_->LastAttempts().value(), (std::pair<int64_t, int64_t>(2, 2)));
  EXPECT_THAT(tasks(store_->ClaimsAfter(2, 10)), IsEmpty());
}

TEST_P(AttemptsTest, SharedWorkIsInTheTraceOfEachJob) {
  const std::string other = NewJob();
  const TaskRecord task = Ensure(job_, Build("k"));
  Ensure(other, Build("k"));
  Claimed(At(20));
  ASSERT_EQ(Trace(other).tasks.size(), 1u);
  EXPECT_EQ(Trace(other).tasks[0].id, task.id);
  EXPECT_EQ(Trace(other).tasks[0].attempts.size(), 1u);
}

TEST_P(AttemptsTest, StagesAndTheTraceParentOfAJob) {
  JobRecord record;
  record.traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  const std::string job = store_->CreateJob(record, At(1))->job.id;
  const int64_t search = store_->BeginStage(job, "search", At(2)).value();
  ASSERT_TRUE(store_->EndStage(search, At(3)).ok());
  ASSERT_TRUE(store_->BeginStage(job, "build round 1", At(4)).ok());
  const JobTraceRecord trace = Trace(job);
  EXPECT_EQ(trace.traceparent, record.traceparent);
  ASSERT_EQ(trace.stages.size(), 2u);
  EXPECT_EQ(trace.stages[0].name, "search");
  EXPECT_EQ(trace.stages[0].started, At(2));
  EXPECT_EQ(trace.stages[0].ended, At(3));
  EXPECT_EQ(trace.stages[1].ended, Timestamp()) << "it runs";
  EXPECT_EQ(Trace(job_).traceparent, "");
  EXPECT_TRUE(absl::IsNotFound(store_->JobTrace("jobs/none").status()));
  EXPECT_TRUE(absl::IsNotFound(store_->BeginStage("jobs/none", "search", At(2)).status()));
}

TEST_P(AttemptsTest, StatisticsCountWhatHasNotEnded) {
  for (const char* key : {"a", "b", "c"}) Ensure(job_, Build(key));
  Ensure(job_, Time("t", "GPU-1"));
  Claimed(At(20));
  Claim("w", "1", TaskKind::kTime, 1, At(20));
  ASSERT_TRUE(store_->CompleteTask({Claimed(At(21)), ""}, At(22)).value());
  EndJob(NewJob());
  const StoreStatistics statistics = store_->Statistics().value();
  EXPECT_EQ(statistics.queued_builds, 1);
  EXPECT_EQ(statistics.running_builds, 1);
  EXPECT_EQ(statistics.queued_timings, 0);
  EXPECT_EQ(statistics.running_timings, 1);
  EXPECT_EQ(statistics.queued_jobs, 1);
  EXPECT_EQ(statistics.running_jobs, 0);
  EXPECT_GT(statistics.bytes, 0);
}

FOR_EVERY_STORE(AttemptsTest);

}  // namespace
}  // namespace fusion
