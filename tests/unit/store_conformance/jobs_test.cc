#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <thread>

#include "tests/unit/store_conformance/store_conformance.h"

namespace fusion {
namespace {

class JobsTest : public StoreConformanceTest {};

JobUpdate ToState(JobState state) {
  JobUpdate update;
  update.state = state;
  return update;
}

TEST_P(JobsTest, KeepsEveryFieldAcrossARestart) {
  JobRecord job;
  job.request_id = "r1";
  job.target = "CUDA";
  job.graph_name = "gemver";
  job.graph_hash = "abc";
  job.graph_summary = std::string("\0\1summary", 9);
  job.request = std::string("\0request", 8);
  absl::StatusOr<CreatedJob> created = store_->CreateJob(job, At(100));
  ASSERT_TRUE(created.ok()) << created.status();
  EXPECT_TRUE(created->created);
  JobUpdate update = ToState(JobState::kRunning);
  update.error = "error";
  update.result = "result";
  update.best = std::string("\0best", 5);
  ASSERT_TRUE(store_->UpdateJob(created->job.id, update, At(101)).ok());

  Reopen();
  absl::StatusOr<JobRecord> read = store_->GetJob(created->job.id);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->id.rfind("jobs/", 0), 0u);
  EXPECT_EQ(read->request_id, "r1");
  EXPECT_EQ(read->state, JobState::kRunning);
  EXPECT_EQ(read->target, "CUDA");
  EXPECT_EQ(read->graph_name, "gemver");
  EXPECT_EQ(read->graph_hash, "abc");
  EXPECT_EQ(read->graph_summary, job.graph_summary);
  EXPECT_EQ(read->request, job.request);
  EXPECT_EQ(read->error, "error");
  EXPECT_EQ(read->result, "result");
  EXPECT_EQ(read->best, *update.best);
  EXPECT_EQ(store_->ListJobs(10, "")->jobs.at(0).best, *update.best);
  EXPECT_EQ(read->created, At(100));
  EXPECT_EQ(read->updated, At(101));
}

TEST_P(JobsTest, TheSameRequestIdGivesTheSameJob) {
  JobRecord job;
  job.request_id = "once";
  absl::StatusOr<CreatedJob> first = store_->CreateJob(job, At(1));
  Reopen();
  absl::StatusOr<CreatedJob> again = store_->CreateJob(job, At(2));
  ASSERT_TRUE(first.ok() && again.ok());
  EXPECT_FALSE(again->created);
  EXPECT_EQ(again->job.id, first->job.id);
  EXPECT_EQ(again->job.created, At(1));
  EXPECT_EQ(store_->ListJobs(0, "")->jobs.size(), 1u);
}

TEST_P(JobsTest, TheSameRequestFromManyThreadsIsOneJob) {
  std::vector<std::string> ids(8);
  std::vector<std::thread> threads;
  for (std::string& id : ids) {
    threads.emplace_back([this, &id] {
      JobRecord job;
      job.request_id = "shared";
      absl::StatusOr<CreatedJob> created = store_->CreateJob(job, At(1));
      if (created.ok()) id = created->job.id;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_NE(ids[0], "");
  EXPECT_THAT(ids, ::testing::Each(ids[0]));
}

TEST_P(JobsTest, UsersDoNotShareTheIdsOfTheirRequests) {
  JobRecord job;
  job.request_id = "same";
  job.user = "ada";
  absl::StatusOr<CreatedJob> ada = store_->CreateJob(job, At(1));
  ASSERT_TRUE(ada.ok()) << ada.status();
  job.user = "ben";
  absl::StatusOr<CreatedJob> ben = store_->CreateJob(job, At(2));
  ASSERT_TRUE(ben.ok()) << ben.status();
  EXPECT_TRUE(ben->created);
  EXPECT_NE(ben->job.id, ada->job.id);
  absl::StatusOr<CreatedJob> again = store_->CreateJob(job, At(3));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_FALSE(again->created);
  EXPECT_EQ(again->job.id, ben->job.id);
  EXPECT_EQ(again->job.user, "ben");
  EXPECT_EQ(again->job.request_id, "same");
}

TEST_P(JobsTest, JobsWithoutRequestIdAreDistinct) {
  EXPECT_NE(NewJob(), NewJob());
  EXPECT_EQ(store_->ListJobs(0, "")->jobs.size(), 2u);
}

TEST_P(JobsTest, AnIdThatIsTakenIsRefused) {
  JobRecord job;
  job.id = "jobs/7";
  ASSERT_TRUE(store_->CreateJob(job, At(1)).ok());
  EXPECT_EQ(store_->CreateJob(job, At(1)).status().code(), absl::StatusCode::kAlreadyExists);
}

TEST_P(JobsTest, AnUnknownJobIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(store_->GetJob("jobs/none").status()));
  EXPECT_TRUE(absl::IsNotFound(store_->UpdateJob("jobs/none", JobUpdate{}, At(1)).status()));
  EXPECT_TRUE(absl::IsNotFound(store_->AppendEvent("jobs/none", "e", At(1)).status()));
  EXPECT_TRUE(absl::IsNotFound(store_->EventsAfter("jobs/none", 0, 10).status()));
}

TEST_P(JobsTest, StatesFollowTheirOrderAndTerminalOnesNeverChange) {
  using S = JobState;
  const std::vector<S> all = {S::kQueued, S::kRunning, S::kSucceeded, S::kFailed, S::kCancelled};
  // Ways to reach each state, and where one may go from there.
  const std::map<S, std::vector<S>> path = {{S::kQueued, {}},
                                            {S::kRunning, {S::kRunning}},
                                            {S::kSucceeded, {S::kRunning, S::kSucceeded}},
                                            {S::kFailed, {S::kRunning, S::kFailed}},
                                            {S::kCancelled, {S::kCancelled}}};
  const std::map<S, std::vector<S>> allowed = {
      {S::kQueued, {S::kQueued, S::kRunning, S::kFailed, S::kCancelled}},
      {S::kRunning, {S::kRunning, S::kSucceeded, S::kFailed, S::kCancelled}},
      {S::kSucceeded, {}},
      {S::kFailed, {}},
      {S::kCancelled, {}}};
  for (S from : all) {
    for (S to : all) {
      SCOPED_TRACE(std::string(JobStateName(from)) + " to " + JobStateName(to));
      const std::string job = NewJob();
      for (S state : path.at(from)) ASSERT_TRUE(store_->UpdateJob(job, ToState(state), At(2)).ok());
      const bool may = std::count(allowed.at(from).begin(), allowed.at(from).end(), to) > 0;
      const absl::Status status = store_->UpdateJob(job, ToState(to), At(3)).status();
      EXPECT_EQ(status.ok(), may) << status;
      if (!may) {
        EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
        EXPECT_EQ(store_->GetJob(job)->state, from);
      }
    }
  }
}

TEST_P(JobsTest, ARefusedUpdateChangesNothing) {
  const std::string job = NewJob();
  JobUpdate update = ToState(JobState::kSucceeded);
  update.result = "result";
  update.event = "event";
  EXPECT_TRUE(absl::IsFailedPrecondition(store_->UpdateJob(job, update, At(5)).status()));
  EXPECT_EQ(store_->GetJob(job)->result, "");
  EXPECT_EQ(store_->GetJob(job)->updated, At(1));
  EXPECT_TRUE(store_->EventsAfter(job, 0, 10)->empty());
}

TEST_P(JobsTest, ListsNewestFirstInPages) {
  std::vector<std::string> ids;
  for (int i = 0; i < 7; ++i) ids.push_back(NewJob());
  std::vector<std::string> listed;
  std::string token;
  int pages = 0;
  do {
    absl::StatusOr<JobPage> page = store_->ListJobs(3, token);
    ASSERT_TRUE(page.ok()) << page.status();
    EXPECT_LE(page->jobs.size(), 3u);
    for (const JobRecord& job : page->jobs) listed.push_back(job.id);
    // A job that comes while one pages does not shift the pages.
    NewJob();
    token = page->next_page_token;
    ++pages;
  } while (!token.empty());
  EXPECT_EQ(pages, 3);
  EXPECT_EQ(listed, std::vector<std::string>(ids.rbegin(), ids.rend()));
}

TEST_P(JobsTest, AForeignPageTokenIsRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(store_->ListJobs(3, "x").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(store_->ListJobs(3, "-1").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(store_->ListJobs(-3, "").status()));
}

TEST_P(JobsTest, UnfinishedJobsAreThoseToTakeUpAgain) {
  const std::string queued = NewJob(), running = NewJob(), ended = NewJob();
  ASSERT_TRUE(store_->UpdateJob(running, ToState(JobState::kRunning), At(2)).ok());
  EndJob(ended);
  Reopen();
  absl::StatusOr<std::vector<JobRecord>> jobs = store_->UnfinishedJobs();
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  ASSERT_EQ(jobs->size(), 2u);
  EXPECT_EQ((*jobs)[0].id, queued);
  EXPECT_EQ((*jobs)[1].id, running);
}

TEST_P(JobsTest, EventsAreNumberedWithoutGapsInEachJob) {
  const std::string a = NewJob(), b = NewJob();
  EXPECT_EQ(*store_->AppendEvent(a, "a1", At(1)), 1);
  EXPECT_EQ(*store_->AppendEvent(b, "b1", At(2)), 1);
  EXPECT_EQ(*store_->AppendEvent(a, "a2", At(3)), 2);
  Reopen();
  EXPECT_EQ(*store_->AppendEvent(a, "a3", At(4)), 3);
  JobUpdate update = ToState(JobState::kCancelled);
  update.event = "last";
  ASSERT_TRUE(store_->UpdateJob(a, update, At(5)).ok());

  absl::StatusOr<std::vector<EventRecord>> events = store_->EventsAfter(a, 1, 10);
  ASSERT_TRUE(events.ok()) << events.status();
  ASSERT_EQ(events->size(), 3u);
  EXPECT_EQ((*events)[0].sequence, 2);
  EXPECT_EQ((*events)[0].event, "a2");
  EXPECT_EQ((*events)[0].time, At(3));
  EXPECT_EQ((*events)[2].sequence, 4);
  EXPECT_EQ((*events)[2].event, "last");
  EXPECT_EQ(store_->EventsAfter(a, 0, 2)->size(), 2u);
  EXPECT_TRUE(store_->EventsAfter(a, 4, 10)->empty());
}

TEST_P(JobsTest, EventsFromManyThreadsAreNumberedWithoutGaps) {
  const std::string job = NewJob();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10; ++i) EXPECT_TRUE(store_->AppendEvent(job, "event", At(i)).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  absl::StatusOr<std::vector<EventRecord>> events = store_->EventsAfter(job, 0, 100);
  ASSERT_TRUE(events.ok()) << events.status();
  ASSERT_EQ(events->size(), 40u);
  for (int i = 0; i < 40; ++i) EXPECT_EQ((*events)[i].sequence, i + 1);
}

FOR_EVERY_STORE(JobsTest);

}  // namespace
}  // namespace fusion
