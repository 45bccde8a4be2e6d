// What becomes of jobs whose ends the store does not take: a disk that is full, a file that is locked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "base/rpc/status_conversion.h"
#include "db/store/sqlite_database.h"
#include "server/upkeep/data_directory.h"
#include "tests/unit/jobs/job_runner_fixture.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

// Another process that writes, for as long as it is there: every change of the store fails, reading goes on.
class OtherWriter {
 public:
  explicit OtherWriter(const std::string& path)
      : database_(*Database::Open(path, Database::Mode::kReadWrite, std::chrono::seconds(5))),
        transaction_(*database_) {
    EXPECT_TRUE(transaction_.status().ok()) << transaction_.status();
  }

 private:
  std::unique_ptr<Database> database_;
  Transaction transaction_;
};

class UnstoredEndTest : public JobRunnerTest {
 protected:
  void SetUp() override {
    JobRunnerTest::SetUp();
    dispatcher_.reset();
    store_.reset();
    auto store =
        OpenSqliteStore(DatabasePath(directory_->path()), {.busy_timeout = std::chrono::milliseconds(20)});
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    dispatcher_ = std::make_unique<Dispatcher>(*store_, pool_.get_executor(), clock_);
    ASSERT_TRUE(dispatcher_->Start().ok());
    options_.store_again_period = std::chrono::milliseconds(50);
    options_.pipeline = [this](const v1::SubmitRequest& request,
                               const PipelineContext&) -> absl::StatusOr<v1::JobResult> {
      steps_.Run(request.request_id());
      return result_;
    };
  }
  // Waits until the job says why it is still there.
  std::string WaitsFor(const std::string& job) {
    std::string waits_for;
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (waits_for.empty() && std::chrono::steady_clock::now() < until) waits_for = runner_->WaitsFor(job);
    return waits_for;
  }
  void RefuseChanges() { other_ = std::make_unique<OtherWriter>(DatabasePath(directory_->path())); }
  void TakeChanges() { other_.reset(); }

  absl::StatusOr<v1::JobResult> result_ = v1::JobResult();
  std::unique_ptr<OtherWriter> other_;
};

TEST_F(UnstoredEndTest, AJobEndsAsSoonAsThatCanBeStored) {
  StartRunner();
  const std::string job = Submit("", 0, "first")->id;
  steps_.Begun(1);
  RefuseChanges();
  steps_.LetGo("first");
  EXPECT_THAT(WaitsFor(job), HasSubstr("locked by another process"));
  EXPECT_EQ(store_->GetJob(job)->state, JobState::kRunning);
  TakeChanges();
  EXPECT_EQ(Ended(job).state, JobState::kSucceeded);
}

TEST_F(UnstoredEndTest, AJobThatFailedKeepsItsError) {
  result_ = absl::ResourceExhaustedError("the disk is full");
  StartRunner();
  const std::string job = Submit("", 0, "first")->id;
  steps_.Begun(1);
  RefuseChanges();
  steps_.LetGo("first");
  EXPECT_NE(WaitsFor(job), "");
  TakeChanges();
  const JobRecord ended = Ended(job);
  EXPECT_EQ(ended.state, JobState::kFailed);
  EXPECT_THAT(ended.error, HasSubstr("the disk is full"));
}

TEST_F(UnstoredEndTest, ItKeepsNoOtherFromItsPlaceAndIsNotBegunAgain) {
  StartRunner();
  const std::string first = Submit("", 0, "first")->id, second = Submit("", 0, "second")->id;
  steps_.Begun(1);
  RefuseChanges();
  steps_.LetGo("first");
  EXPECT_NE(WaitsFor(first), "");
  EXPECT_TRUE(runner_->EnsureRunning(first).ok());
  // The second could not even be noted as running.
  EXPECT_NE(WaitsFor(second), "");
  TakeChanges();
  EXPECT_EQ(Ended(first).state, JobState::kSucceeded);
  EXPECT_EQ(Ended(second).state, JobState::kFailed);
  EXPECT_EQ(steps_.Begun(1).size(), 1u);
}

TEST_F(UnstoredEndTest, WhatAStoppedServerCouldNotStoreGoesOnAtTheNextStart) {
  StartRunner();
  const std::string job = Submit("", 0, "first")->id;
  steps_.Begun(1);
  RefuseChanges();
  steps_.LetGo("first");
  EXPECT_NE(WaitsFor(job), "");
  runner_.reset();
  TakeChanges();
  EXPECT_EQ(store_->GetJob(job)->state, JobState::kRunning);
  dispatcher_ = std::make_unique<Dispatcher>(*store_, pool_.get_executor(), clock_);
  ASSERT_TRUE(dispatcher_->Start().ok());
  StartRunner();
  ASSERT_TRUE(runner_->ResumeAll().ok());
  EXPECT_EQ(Ended(job).state, JobState::kSucceeded);
}

}  // namespace
}  // namespace fusion
