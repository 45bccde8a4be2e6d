#include "client/api/embedded.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "client/api/client.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

class EmbeddedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        ::testing::TempDir() + "/embedded-" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    options_.data_directory = folder_;
    options_.notice = [this](const std::string& line) { notices_.push_back(line); };
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string folder_;
  EmbeddedOptions options_;
  std::vector<std::string> notices_;
};

TEST_F(EmbeddedTest, JobsStayInTheDataDirectory) {
  v1::SubmitRequest request;
  request.mutable_source()->set_fuse("vector[5] x, y;\ninput x;\ny = neg(x);\nreturn y;\n");
  std::string name;
  {
    absl::StatusOr<std::unique_ptr<Client>> client = Client::Embedded(options_);
    ASSERT_TRUE(client.ok()) << client.status();
    EXPECT_TRUE((*client)->embedded());
    absl::StatusOr<v1::Job> job = (*client)->Submit(request);
    ASSERT_TRUE(job.ok()) << job.status();
    name = job->name();
  }
  absl::StatusOr<std::unique_ptr<Client>> client = Client::Embedded(options_);
  ASSERT_TRUE(client.ok()) << client.status();
  absl::StatusOr<v1::Job> job = (*client)->GetJob(name);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_TRUE(job->state() == v1::QUEUED || job->state() == v1::RUNNING) << v1::JobState_Name(job->state());
  EXPECT_TRUE(notices_.empty());
}

// This program's server says that it knows all that its client sends.
TEST_F(EmbeddedTest, TheDeviceOfASubmissionIsKnown) {
  absl::StatusOr<std::unique_ptr<Client>> client = Client::Embedded(options_);
  ASSERT_TRUE(client.ok()) << client.status();
  v1::SubmitRequest request;
  request.mutable_source()->set_fuse("vector[5] x, y;\ninput x;\ny = neg(x);\nreturn y;\n");
  request.set_device("Ryzen");
  const absl::StatusOr<v1::Job> job = (*client)->Submit(request);
  EXPECT_TRUE(job.ok()) << job.status();
}

TEST_F(EmbeddedTest, LockedDirectoryIsReplacedByATemporaryOneWithANotice) {
  absl::StatusOr<std::unique_ptr<EmbeddedBackend>> first = EmbeddedBackend::Start(options_);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_FALSE((*first)->temporary());
  absl::StatusOr<std::unique_ptr<EmbeddedBackend>> second = EmbeddedBackend::Start(options_);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE((*second)->temporary());
  EXPECT_NE((*second)->data_directory(), folder_);
  ASSERT_EQ(notices_.size(), 1u);
  EXPECT_THAT(notices_[0], HasSubstr("using a temporary one"));
  const std::string temporary = (*second)->data_directory();
  second->reset();
  EXPECT_FALSE(std::filesystem::exists(temporary));

  options_.when_locked = EmbeddedOptions::WhenLocked::kFail;
  EXPECT_TRUE(absl::IsUnavailable(EmbeddedBackend::Start(options_).status()));
}

TEST_F(EmbeddedTest, EphemeralLeavesTheDataDirectoryAlone) {
  options_.ephemeral = true;
  absl::StatusOr<std::unique_ptr<Client>> client = Client::Embedded(options_);
  ASSERT_TRUE(client.ok()) << client.status();
  absl::StatusOr<v1::ListFunctionsResponse> functions = (*client)->ListFunctions("");
  ASSERT_TRUE(functions.ok()) << functions.status();
  EXPECT_GT(functions->functions_size(), 20);
  EXPECT_FALSE(std::filesystem::exists(folder_));
}

}  // namespace
}  // namespace fusion
