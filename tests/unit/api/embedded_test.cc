#include "client/api/embedded.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/api/client.h"
#include "server/rpc/server.h"

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

std::unique_ptr<Client> OpenOn(const EmbeddedOptions& options) {
  absl::StatusOr<std::unique_ptr<Client>> client = Client::Embedded(options);
  EXPECT_TRUE(client.ok()) << client.status();
  return client.ok() ? *std::move(client) : nullptr;
}

v1::SubmitRequest Negation() {
  v1::SubmitRequest request;
  request.mutable_source()->set_fuse("vector[5] x, y;\ninput x;\ny = neg(x);\nreturn y;\n");
  return request;
}

TEST_F(EmbeddedTest, ASecondClientHasTheJobsOfTheFirst) {
  const std::unique_ptr<Client> first = OpenOn(options_), second = OpenOn(options_);
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(second->embedded());
  EXPECT_TRUE(second->keeps_jobs());
  const absl::StatusOr<v1::Job> job = first->Submit(Negation());
  ASSERT_TRUE(job.ok()) << job.status();
  const absl::StatusOr<v1::Job> seen = second->GetJob(job->name());
  ASSERT_TRUE(seen.ok()) << seen.status();
  EXPECT_EQ(seen->graph().hash(), job->graph().hash());
  EXPECT_TRUE(notices_.empty());
}

// Again and again, since the socket of the one that ends must not take that of its successor along.
TEST_F(EmbeddedTest, WhenTheFirstEndsAnotherHasTheServer) {
  std::unique_ptr<Client> last = OpenOn(options_);
  ASSERT_TRUE(last);
  const absl::StatusOr<v1::Job> job = last->Submit(Negation());
  ASSERT_TRUE(job.ok()) << job.status();
  const std::unique_ptr<Client> witness = OpenOn(options_);
  ASSERT_TRUE(witness);
  for (int i = 0; i < 5; ++i) {
    std::unique_ptr<Client> next = OpenOn(options_);
    ASSERT_TRUE(next);
    last = std::move(next);  // the one before ends
    for (const Client* client : {last.get(), witness.get()}) {
      const absl::StatusOr<v1::Job> seen = const_cast<Client*>(client)->GetJob(job->name());
      ASSERT_TRUE(seen.ok()) << i << ": " << seen.status();
    }
  }
}

// The server of the first has the job, and ends with it; the second sees the job to its end.
TEST_F(EmbeddedTest, AJobOfTheSecondOutlivesTheFirst) {
  std::unique_ptr<Client> first = OpenOn(options_);
  const std::unique_ptr<Client> second = OpenOn(options_);
  ASSERT_TRUE(first && second);
  v1::SubmitRequest request = Negation();
  request.set_target(v1::HOST);
  request.set_candidates(1);
  const absl::StatusOr<v1::Job> job = second->Submit(request);
  ASSERT_TRUE(job.ok()) << job.status();
  second->StartEmbeddedWorker(v1::HOST);
  bool begun = false;
  const absl::StatusOr<v1::Job> ended = second->WatchJob(job->name(), 0, [&](const v1::JobEvent&) {
    if (!std::exchange(begun, true)) first.reset();
  });
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_TRUE(begun);
  EXPECT_EQ(ended->state(), v1::SUCCEEDED) << ended->error().message();
}

// A program that has the data directory for itself: a server, or a client of an earlier version.
TEST_F(EmbeddedTest, ADirectoryThatNobodySharesIsAnError) {
  ServerOptions server;
  server.data_directory = folder_;
  const absl::StatusOr<std::unique_ptr<Server>> running = Server::Start(server);
  ASSERT_TRUE(running.ok()) << running.status();
  const absl::Status refused = EmbeddedBackend::Start(options_).status();
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("in use by process"));
}

TEST_F(EmbeddedTest, DumpsNeedAServerOfTheirOwn) {
  const std::unique_ptr<Client> first = OpenOn(options_);
  options_.dump_directory = folder_ + "/dump";
  const absl::Status refused = EmbeddedBackend::Start(options_).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("--dump-dir"));
}

TEST_F(EmbeddedTest, TheSocketIsTheUsersAlone) {
  const std::unique_ptr<Client> client = OpenOn(options_);
  struct stat status = {};
  ASSERT_EQ(stat((folder_ + "/server.socket").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
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
