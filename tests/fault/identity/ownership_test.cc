// Whose job it is, and who learns of it.
#include "tests/fault/identity/farm_fixture.h"

namespace fusion::testing {
namespace {

using ::testing::Contains;
using ::testing::Not;
using ::testing::StartsWith;

class OwnershipTest : public FarmTest {
 protected:
  void SetUp() override {
    FarmTest::SetUp();
    Start();
    eva_ = ClientOf("user-eva");
    max_ = ClientOf("user-max");
    root_ = ClientOf("admin-root");
  }
  std::unique_ptr<Client> eva_, max_, root_;
};

TEST_F(OwnershipTest, AJobSaysWhoseItIs) {
  absl::StatusOr<v1::Job> job = eva_->Submit(Request());
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->user(), "eva");
  EXPECT_EQ(root_->GetJob(job->name())->user(), "eva");
  EXPECT_THAT(Audit(), Contains("OK Submit eva " + job->name()));
}

TEST_F(OwnershipTest, AnotherUsersJobCannotBeToldFromNone) {
  absl::StatusOr<v1::Job> job = eva_->Submit(Request());
  ASSERT_TRUE(job.ok()) << job.status();
  const std::string none = "jobs/0000000000000000";
  auto expect_same = [&](const absl::Status& other, const absl::Status& missing) {
    EXPECT_EQ(other.code(), absl::StatusCode::kNotFound) << other;
    std::string expected(missing.message());
    EXPECT_NE(expected.find(none), std::string::npos) << missing;
    expected.replace(expected.find(none), none.size(), job->name());
    EXPECT_EQ(std::string(other.message()), expected);
  };
  auto ignore = [](const v1::JobEvent&) {};
  expect_same(max_->GetJob(job->name()).status(), max_->GetJob(none).status());
  expect_same(max_->CancelJob(job->name()).status(), max_->CancelJob(none).status());
  expect_same(max_->WatchJob(job->name(), 0, ignore).status(), max_->WatchJob(none, 0, ignore).status());
  expect_same(max_->DownloadArtifact(job->name(), 1).status(), max_->DownloadArtifact(none, 1).status());
  EXPECT_EQ(eva_->GetJob(job->name())->state(), eva_->GetJob(job->name())->state());
  EXPECT_NE(eva_->GetJob(job->name())->state(), v1::CANCELLED);
  for (const char* method : {"GetJob", "CancelJob", "WatchJob", "DownloadArtifact"})
    EXPECT_THAT(Audit(), Contains("PERMISSION_DENIED " + std::string(method) + " max " + job->name()));
}

TEST_F(OwnershipTest, ValuesOfInputsThatAnotherHasUploadedCannotBeToldFromNone) {
  v1::SubmitRequest request = Request();
  v1::GraphSource* source = request.mutable_source();
  source->set_fuse("vector[3] x, y;\ninput x;\ny = neg(x);\nreturn y;\n");
  const std::string bytes(12, 'b');
  const absl::StatusOr<std::string> digest = eva_->UploadInput(bytes);
  ASSERT_TRUE(digest.ok()) << digest.status();
  v1::InputValues& values = (*source->mutable_input_values())["x"];
  values.set_kind(v1::InputValues::FILE);
  const auto submitted_by = [&](Client& client, const std::string& blob) {
    values.set_blob(blob);
    return client.Submit(request).status();
  };
  const std::string none = BlobDigest("nobody has these bytes");
  const absl::Status other = submitted_by(*max_, *digest), missing = submitted_by(*max_, none);
  EXPECT_TRUE(absl::IsFailedPrecondition(other)) << other;
  EXPECT_EQ(other.code(), missing.code());
  std::string expected(missing.message());
  ASSERT_NE(expected.find(none), std::string::npos) << missing;
  expected.replace(expected.find(none), none.size(), *digest);
  EXPECT_EQ(std::string(other.message()), expected);
  EXPECT_TRUE(submitted_by(*eva_, *digest).ok());
  // Whoever has the bytes himself has uploaded them.
  ASSERT_TRUE(max_->UploadInput(bytes).ok());
  EXPECT_TRUE(submitted_by(*max_, *digest).ok());
}

TEST_F(OwnershipTest, UsersListTheirOwnJobsAdminsAll) {
  ASSERT_TRUE(eva_->Submit(Request()).ok());
  ASSERT_TRUE(eva_->Submit(Request()).ok());
  ASSERT_TRUE(max_->Submit(Request()).ok());
  EXPECT_EQ(eva_->ListJobs(0, "")->jobs_size(), 2);
  EXPECT_EQ(max_->ListJobs(0, "")->jobs_size(), 1);
  EXPECT_EQ(root_->ListJobs(0, "")->jobs_size(), 3);
}

TEST_F(OwnershipTest, TheSameRequestIdOfTwoUsersMakesTwoJobs) {
  absl::StatusOr<v1::Job> first = eva_->Submit(Request("nightly"));
  absl::StatusOr<v1::Job> again = eva_->Submit(Request("nightly"));
  absl::StatusOr<v1::Job> other = max_->Submit(Request("nightly"));
  ASSERT_TRUE(first.ok() && again.ok() && other.ok());
  EXPECT_EQ(first->name(), again->name());
  EXPECT_NE(first->name(), other->name());
  EXPECT_EQ(other->user(), "max");
}

TEST_F(OwnershipTest, OwnersAndAdminsCancelAndWatch) {
  absl::StatusOr<v1::Job> job = eva_->Submit(Request());
  absl::StatusOr<v1::Job> second = eva_->Submit(Request());
  ASSERT_TRUE(job.ok() && second.ok());
  EXPECT_EQ(eva_->CancelJob(job->name())->state(), v1::CANCELLED);
  EXPECT_EQ(root_->CancelJob(second->name())->state(), v1::CANCELLED);
  auto ignore = [](const v1::JobEvent&) {};
  EXPECT_EQ(eva_->WatchJob(job->name(), 0, ignore)->state(), v1::CANCELLED);
  EXPECT_EQ(root_->WatchJob(job->name(), 0, ignore)->state(), v1::CANCELLED);
  EXPECT_THAT(Audit(), Contains("OK CancelJob root " + second->name()));
}

TEST_F(OwnershipTest, CertificateAndTokenOfOneNameAreOneUser) {
  absl::StatusOr<v1::Job> job = eva_->Submit(Request());
  ASSERT_TRUE(job.ok());
  std::unique_ptr<Client> token = ClientWith(Token("eva", v1::USER).secret());
  EXPECT_EQ(token->GetJob(job->name())->name(), job->name());
}

TEST_F(OwnershipTest, ReportsOnPredictionsAreOfOnesOwnJobs) {
  ASSERT_TRUE(eva_->Submit(Request()).ok());
  EXPECT_TRUE(absl::IsNotFound(max_->ReportModel({}).status()));
}

TEST_F(OwnershipTest, ReadingIsNotRecorded) {
  ASSERT_TRUE(eva_->ListJobs(0, "").ok());
  ASSERT_TRUE(eva_->ListWorkers().ok());
  EXPECT_THAT(Audit(), Not(Contains(StartsWith("OK List"))));
}

}  // namespace
}  // namespace fusion::testing
