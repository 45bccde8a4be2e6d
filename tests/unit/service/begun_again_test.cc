// Jobs that end the server each time that it begins them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/rpc/status.pb.h"
#include "server/service/job_runner.h"
#include "tests/unit/service/job_runner_fixture.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

// As a process leaves them that has ended abruptly: begun so often again.
class BegunAgainTest : public JobRunnerTest {
 protected:
  BegunAgainTest() { options_.suspect_delay = std::chrono::milliseconds(0); }
  void LeaveRunning(const std::string& job, int starts) {
    JobRecord record;
    record.id = job;
    ASSERT_TRUE(store_->CreateJob(record, TimeOfDay()).ok());
    JobUpdate update;
    update.state = JobState::kRunning;
    ASSERT_TRUE(store_->UpdateJob(job, update, TimeOfDay()).ok());
    ASSERT_TRUE(store_->PutStarts({{job, starts}}).ok());
  }
  // More of them than may wait without a place, which is eight.
  void ExpectManySuspectsToEnd() {
    options_.suspect_delay = std::chrono::milliseconds(500);
    std::vector<std::string> jobs;
    for (int i = 0; i < 12; ++i) LeaveRunning(jobs.emplace_back(absl::StrCat("jobs/", i)), 19);
    StartRunner();
    ASSERT_TRUE(runner_->ResumeAll().ok());
    for (const std::string& job : jobs) ASSERT_EQ(Ended(job).state, JobState::kSucceeded) << job;
  }
  // Each start is noted before anything else is done.
  void NoteStarts() {
    options_.pipeline = [this](const v1::SubmitRequest&,
                               const PipelineContext& context) -> absl::StatusOr<v1::JobResult> {
      steps_.Run(absl::StrCat(context.job, " ", store_->Starts(context.job).value()));
      return v1::JobResult();
    };
  }
};

TEST_F(BegunAgainTest, AJobThatEndsItsServerEachTimeIsGivenUp) {
  NoteStarts();
  LeaveRunning("jobs/killer", 98);
  StartRunner();
  ASSERT_TRUE(runner_->ResumeAll().ok());
  EXPECT_THAT(steps_.Begun(1), ElementsAre("jobs/killer 99"));
  steps_.LetAllGo();
  EXPECT_EQ(Ended("jobs/killer").state, JobState::kSucceeded);

  LeaveRunning("jobs/worse", 99);
  ASSERT_TRUE(runner_->ResumeAll().ok());
  const JobRecord ended = Ended("jobs/worse");
  EXPECT_EQ(ended.state, JobState::kFailed);
  google::rpc::Status error;
  ASSERT_TRUE(error.ParseFromString(ended.error));
  EXPECT_THAT(error.message(), HasSubstr("ended abruptly each of the 100 times that it began this job"));
  EXPECT_THAT(steps_.Begun(1), SizeIs(1)) << "it is not begun again";
}

TEST_F(BegunAgainTest, ANewJobIsNotCountedAndOneThatIsOutlivedStartsAnew) {
  NoteStarts();
  options_.time_used_period = std::chrono::milliseconds(500);
  LeaveRunning("jobs/slow", 3);
  options_.threads = 2;
  StartRunner();
  ASSERT_TRUE(runner_->ResumeAll().ok());
  EXPECT_THAT(steps_.Begun(1), ElementsAre("jobs/slow 4"));
  for (int i = 0; i < 2000 && *store_->Starts("jobs/slow") > 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(*store_->Starts("jobs/slow"), 0);
  const absl::StatusOr<JobRecord> fresh = Submit("somebody");
  ASSERT_TRUE(fresh.ok());
  EXPECT_THAT(steps_.Begun(2), ElementsAre("jobs/slow 4", fresh->id + " 0"));
}

TEST_F(BegunAgainTest, AServerThatStopsInOrderCountsForNothing) {
  NoteStarts();
  options_.time_used_period = std::chrono::hours(1);
  LeaveRunning("jobs/good", 3);
  StartRunner();
  ASSERT_TRUE(runner_->ResumeAll().ok());
  EXPECT_THAT(steps_.Begun(1), ElementsAre("jobs/good 4"));
  std::thread stop([this] { runner_->Stop(); });
  for (int i = 0; i < 2000 && *store_->Starts("jobs/good") > 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(*store_->Starts("jobs/good"), 0);
  steps_.LetAllGo();
  stop.join();
}

// Such a job runs a while each time: that it is outlived for a moment says nothing.
TEST_F(BegunAgainTest, AJobThatEndsItsServerLaterMustBeOutlivedForLonger) {
  NoteStarts();
  options_.time_used_period = std::chrono::milliseconds(20);
  options_.threads = 2;
  LeaveRunning("jobs/late", 3);
  LeaveRunning("jobs/early", 3);
  ASSERT_TRUE(store_->PutOutlived({{"jobs/late", std::chrono::minutes(10)}}).ok());
  StartRunner();
  ASSERT_TRUE(runner_->ResumeAll().ok());
  steps_.Begun(2);
  for (int i = 0; i < 2000 && *store_->Outlived("jobs/early") < std::chrono::milliseconds(80); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_GE(*store_->Outlived("jobs/early"), std::chrono::milliseconds(80));
  EXPECT_EQ(*store_->Starts("jobs/early"), 0);
  EXPECT_EQ(*store_->Starts("jobs/late"), 4);
  EXPECT_EQ(*store_->Outlived("jobs/late"), std::chrono::minutes(10));
  std::thread stop([this] { runner_->Stop(); });
  for (int i = 0; i < 2000 && *store_->Starts("jobs/late") > 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(*store_->Starts("jobs/late"), 0) << "a stop in order";
  steps_.LetAllGo();
  stop.join();
}

// Of several jobs that were there when servers ended, one may be at fault.
TEST_F(BegunAgainTest, SuspectsGoOneAtATimeAndKeepNobodyElse) {
  NoteStarts();
  options_.threads = 4;
  options_.time_used_period = std::chrono::hours(1);
  LeaveRunning("jobs/a", 19);
  LeaveRunning("jobs/b", 19);
  LeaveRunning("jobs/c", 0);
  StartRunner();
  ASSERT_TRUE(runner_->ResumeAll().ok());
  std::vector<std::string> begun = steps_.Begun(2);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  begun = steps_.Begun(2);
  ASSERT_THAT(begun, SizeIs(2)) << "one of the suspects waits";
  EXPECT_THAT(begun, ::testing::Contains("jobs/c 1"));
  const std::string first = begun[0] == "jobs/c 1" ? begun[1] : begun[0];
  const std::string second = first == "jobs/a 20" ? "jobs/b" : "jobs/a";
  EXPECT_EQ(*store_->Starts(second), 19) << "what it has not begun counts for nothing";
  steps_.LetGo(first);
  EXPECT_THAT(steps_.Begun(3), ::testing::Contains(second + " 20"));
}

TEST_F(BegunAgainTest, ASuspectKeepsOthersForAWhileAndNoLongerThanUntilATaskOfItHasEnded) {
  NoteStarts();
  options_.threads = 4;
  options_.time_used_period = std::chrono::milliseconds(20);
  options_.suspect_alone = std::chrono::seconds(2);
  LeaveRunning("jobs/a", 19);
  LeaveRunning("jobs/b", 19);
  LeaveRunning("jobs/c", 19);
  for (const char* job : {"jobs/a", "jobs/b", "jobs/c"})
    ASSERT_TRUE(store_->PutStarts({{job, 19}}).ok() &&
                store_->PutOutlived({{job, std::chrono::minutes(5)}}).ok());
  StartRunner();
  ASSERT_TRUE(runner_->ResumeAll().ok());
  const std::string first = steps_.Begun(1)[0];
  const auto start = std::chrono::steady_clock::now();
  const std::string second = steps_.Begun(2)[1];
  const auto then = std::chrono::steady_clock::now();
  EXPECT_GE(then - start, std::chrono::milliseconds(1500));
  for (const std::string& begun : {first, second})
    EXPECT_EQ(*store_->Starts(begun.substr(0, 6)), 20) << "it has not been outlived";
  // As the end of a task makes it.
  ASSERT_TRUE(store_->PutStarts({{second.substr(0, 6), 0}}).ok());
  EXPECT_THAT(steps_.Begun(3), SizeIs(3));
  EXPECT_LT(std::chrono::steady_clock::now() - then, std::chrono::milliseconds(1500));
  steps_.LetAllGo();
}

TEST_F(BegunAgainTest, ATaskThatEndsWhileASuspectWaitsMakesItNone) {
  NoteStarts();
  options_.threads = 4;
  options_.time_used_period = std::chrono::hours(1);
  std::vector<std::string> waiting = {"jobs/a", "jobs/b", "jobs/c"};
  for (const std::string& job : waiting) LeaveRunning(job, 40);
  StartRunner();
  ASSERT_TRUE(runner_->ResumeAll().ok());
  const std::string first = steps_.Begun(1)[0];
  EXPECT_TRUE(std::erase(waiting, first.substr(0, 6)) == 1 && first.substr(6) == " 41") << first;
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_THAT(steps_.Begun(1), SizeIs(1)) << "the others wait";
  for (const std::string& job : waiting) ASSERT_TRUE(store_->PutStarts({{job, 0}}).ok());
  steps_.LetGo(first);
  EXPECT_THAT(steps_.Begun(3), UnorderedElementsAre(first, waiting[0] + " 1", waiting[1] + " 1"))
      << "neither is counted from what it was before, or keeps the other";
  steps_.LetAllGo();
}

TEST_F(BegunAgainTest, ASuspectLeavesOthersTheBeginningOfTheServersLife) {
  NoteStarts();
  options_.threads = 4;
  options_.suspect_delay = std::chrono::hours(1);
  LeaveRunning("jobs/a", 19);
  LeaveRunning("jobs/c", 0);
  StartRunner();
  ASSERT_TRUE(runner_->ResumeAll().ok());
  EXPECT_THAT(steps_.Begun(1), ElementsAre("jobs/c 1"));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_THAT(steps_.Begun(1), ElementsAre("jobs/c 1"));
  EXPECT_EQ(*store_->Starts("jobs/a"), 19) << "what it has not begun counts for nothing";
  steps_.LetAllGo();
}

// More than may wait without a place, all of one user, for whom none is kept. When the first may have its
// turn the places are those of others that wait for theirs.
TEST_F(BegunAgainTest, ManySuspectsAllEnd) {
  NoteStarts();
  steps_.LetAllGo();
  ExpectManySuspectsToEnd();
}

// Nor do they have the place of the one whose turn it is, when it has to wait for a device.
TEST_F(BegunAgainTest, ManySuspectsThatWaitForADeviceAllEnd) {
  options_.time_used_period = std::chrono::hours(1);  // nothing else ends a turn
  options_.pipeline = [](const v1::SubmitRequest&,
                         const PipelineContext& context) -> absl::StatusOr<v1::JobResult> {
    context.waits_for_device(true);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    context.waits_for_device(false);
    return v1::JobResult();
  };
  ExpectManySuspectsToEnd();
}

TEST_F(BegunAgainTest, ASuspectThatWaitsHasNoPlace) {
  NoteStarts();
  options_.suspect_delay = std::chrono::hours(1);
  LeaveRunning("jobs/a", 19);
  StartRunner();
  ASSERT_TRUE(runner_->ResumeAll().ok());
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  // Of the same user, for whom none is kept.
  for (int i = 0; i < 2; ++i) {
    const absl::StatusOr<JobRecord> fresh = Submit();
    ASSERT_TRUE(fresh.ok()) << fresh.status();
    EXPECT_THAT(steps_.Begun(i + 1), SizeIs(i + 1));
    steps_.LetAllGo();
    EXPECT_EQ(Ended(fresh->id).state, JobState::kSucceeded);
  }
}

}  // namespace
}  // namespace fusion
