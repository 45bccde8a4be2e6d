#include "server/optimize/input_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "absl/strings/str_cat.h"
#include "base/rpc/chunks.h"
#include "base/temporary_directory.h"
#include "server/upkeep/data_directory.h"
#include "tests/unit/rpc/server_fixture.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr Timestamp kNow{std::chrono::seconds(100)}, kLater{std::chrono::seconds(200)};

// kSource with x, of 4000 bytes, and y from files, in this order.
v1::GraphSource SourceWithFiles(const std::string& x, const std::string& y = "") {
  v1::GraphSource source;
  source.set_fuse(kSource);
  source.set_file_name("add.fuse");
  const auto add = [&](const char* name, const std::string& digest) {
    if (digest.empty()) return;
    v1::InputValues& values = (*source.mutable_input_values())[name];
    values.set_kind(v1::InputValues::FILE);
    values.set_blob(digest);
  };
  add("x", x);
  add("y", y);
  return source;
}

class InputFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto directory = TemporaryDirectory::Create();
    ASSERT_TRUE(directory.ok());
    directory_ = *std::move(directory);
    auto store = OpenSqliteStore(DatabasePath(directory_->path()));
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }
  // Bytes of one letter, as if the user had uploaded them; the digest.
  std::string Upload(const std::string& user, size_t bytes, char letter) {
    const std::string content(bytes, letter);
    EXPECT_TRUE(StoreInputFile(*store_, user, content, BlobDigest(content), kNow).ok());
    return BlobDigest(content);
  }
  Submission Checked(const v1::GraphSource& source) {
    auto checked = CheckSource(source, *Catalog::BuiltIn());
    EXPECT_TRUE(checked.ok()) << checked.status();
    return *std::move(checked);
  }
  std::string CreateJob(const std::string& user) {
    JobRecord record;
    record.user = user;
    record.target = "HOST";
    auto created = store_->CreateJob(record, kNow);
    EXPECT_TRUE(created.ok()) << created.status();
    return created->job.id;
  }
  bool Trimmed(const std::string& digest) {
    EXPECT_TRUE(store_->TrimBuildCache(0, kLater, 100).ok());
    return !*store_->HasBlob(digest);
  }

  std::unique_ptr<TemporaryDirectory> directory_;
  std::unique_ptr<Store> store_;
};

TEST_F(InputFilesTest, AreThereForWhoUploadedThemAtTheSizeThatTheyHave) {
  const std::string x = Upload("eva", 4000, 'x');
  const Submission source = Checked(SourceWithFiles(x));
  EXPECT_TRUE(CheckInputFiles(*store_, "eva", InputFilesOf(source)).ok());
  const absl::Status of_another = CheckInputFiles(*store_, "max", InputFilesOf(source));
  EXPECT_TRUE(absl::IsFailedPrecondition(of_another)) << of_another;
  // Nobody can tell files of others from files that do not exist.
  std::string missing(BlobDigest("no such file"));
  const absl::Status of_nobody =
      CheckInputFiles(*store_, "eva", InputFilesOf(Checked(SourceWithFiles(missing))));
  EXPECT_EQ(of_another.message(), absl::StrCat("the values of input x, 4000 bytes with the digest ", x,
                                               ", are not here: upload them again, then submit"));
  EXPECT_EQ(of_nobody.message(), absl::StrCat("the values of input x, 4000 bytes with the digest ", missing,
                                              ", are not here: upload them again, then submit"));
  v1::GraphSource longer = SourceWithFiles(x);
  (*longer.mutable_size_values())["n"] = 1001;
  EXPECT_THAT(std::string(CheckInputFiles(*store_, "eva", InputFilesOf(Checked(longer))).message()),
              HasSubstr("4004 bytes"));
}

TEST_F(InputFilesTest, AllThatAreMissingAreToldAtOnce) {
  const absl::Status missing =
      CheckInputFiles(*store_, "", InputFilesOf(Checked(SourceWithFiles(BlobDigest("1"), BlobDigest("2")))));
  EXPECT_THAT(std::string(missing.message()), HasSubstr("input x, "));
  EXPECT_THAT(std::string(missing.message()), HasSubstr("\nthe values of input y, "));
  EXPECT_TRUE(CheckInputFiles(*store_, "", InputFilesOf(Checked(SourceWithFiles("")))).ok());
}

TEST_F(InputFilesTest, TooManyBytesForAJobAreRefusedWhetherTheyAreThereOrNot) {
  v1::GraphSource source = SourceWithFiles(BlobDigest("1"), BlobDigest("2"));
  (*source.mutable_size_values())["n"] = kMaximumInputFileBytes / 8;
  EXPECT_TRUE(absl::IsFailedPrecondition(CheckInputFiles(*store_, "", InputFilesOf(Checked(source)))));
  (*source.mutable_size_values())["n"] = kMaximumInputFileBytes / 8 + 1;
  const absl::Status refused = CheckInputFiles(*store_, "", InputFilesOf(Checked(source)));
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("768 MiB"));
}

TEST_F(InputFilesTest, StayUntilTheJobHasEnded) {
  const std::string kept = Upload("eva", 4000, 'x'), other = Upload("eva", 4000, 'y');
  const std::string job = CreateJob("eva");
  const Submission source = Checked(SourceWithFiles(kept));
  ASSERT_TRUE(HoldInputFiles(*store_, job, InputFilesOf(source), kNow).ok());
  EXPECT_FALSE(Trimmed(kept));
  EXPECT_TRUE(Trimmed(other));
  for (const JobState state : {JobState::kRunning, JobState::kSucceeded}) {
    EXPECT_FALSE(Trimmed(kept));
    JobUpdate update;
    update.state = state;
    ASSERT_TRUE(store_->UpdateJob(job, update, kLater).ok());
  }
  EXPECT_TRUE(Trimmed(kept));
  EXPECT_TRUE(absl::IsFailedPrecondition(CheckInputFiles(*store_, "eva", InputFilesOf(source))));
  // Uploaded again they are there again.
  Upload("eva", 4000, 'x');
  EXPECT_TRUE(CheckInputFiles(*store_, "eva", InputFilesOf(source)).ok());
}

TEST_F(InputFilesTest, AJobHasThoseOfItsUserAlone) {
  const Submission source = Checked(SourceWithFiles(Upload("eva", 4000, 'x')));
  EXPECT_TRUE(
      absl::IsFailedPrecondition(HoldInputFiles(*store_, CreateJob("max"), InputFilesOf(source), kNow)));
}

TEST_F(InputFilesTest, BytesOfAnotherDigestAreNotStored) {
  EXPECT_TRUE(absl::IsInvalidArgument(StoreInputFile(*store_, "", "bytes", BlobDigest("others"), kNow)));
}

// Over the protocol.
class UploadTest : public ServerTest {
 protected:
  absl::StatusOr<std::string> Upload(const std::string& bytes) {
    grpc::ClientContext context;
    v1::WriteBlobResponse response;
    auto writer = optimizer_->UploadInput(&context, &response);
    ChunkSplitter splitter(BlobDigest(bytes), bytes);
    for (v1::Chunk chunk; splitter.Next(&chunk);)
      if (!writer->Write(chunk)) break;
    writer->WritesDone();
    const grpc::Status status = writer->Finish();
    if (!status.ok()) return FromGrpcStatus(status);
    return response.digest();
  }
  static v1::SubmitRequest RequestFor(const v1::GraphSource& source, const std::string& id = "") {
    v1::SubmitRequest request = Request(id);
    *request.mutable_source() = source;
    return request;
  }
};

TEST_F(UploadTest, WhatIsUploadedInChunksIsThereForASubmission) {
  StartServer([](const v1::SubmitRequest&, const PipelineContext&) { return Result(); });
  v1::GraphSource source = SourceWithFiles(BlobDigest("never uploaded"));
  const int64_t entries = (3 * kChunkBytes + 16) / 4;
  (*source.mutable_size_values())["n"] = entries;
  const absl::Status refused = Submit(RequestFor(source)).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("upload them again"));

  const absl::StatusOr<std::string> digest = Upload(std::string(4 * entries, 'v'));
  ASSERT_TRUE(digest.ok()) << digest.status();
  (*source.mutable_input_values())["x"].set_blob(*digest);
  const absl::StatusOr<v1::Job> job = Submit(RequestFor(source));
  EXPECT_TRUE(job.ok()) << job.status();
}

TEST_F(UploadTest, ARequestIdIsThatOfTheSameValues) {
  StartServer([](const v1::SubmitRequest&, const PipelineContext&) { return Result(); });
  const absl::StatusOr<std::string> x = Upload(std::string(4000, 'x')),
                                    other = Upload(std::string(4000, 'o'));
  ASSERT_TRUE(x.ok() && other.ok());
  const absl::StatusOr<v1::Job> job = Submit(RequestFor(SourceWithFiles(*x), "id"));
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(Submit(RequestFor(SourceWithFiles(*x), "id"))->name(), job->name());
  for (const v1::SubmitRequest& different :
       {RequestFor(SourceWithFiles(*other), "id"), RequestFor(SourceWithFiles(""), "id")}) {
    const absl::Status refused = Submit(different).status();
    EXPECT_TRUE(absl::IsAlreadyExists(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("for other values of inputs"));
  }
  v1::SubmitRequest asked = RequestFor(SourceWithFiles(*x), "id");
  (*asked.mutable_tolerances())["z"] = 0.1;
  EXPECT_TRUE(absl::IsAlreadyExists(Submit(asked).status()));
}

}  // namespace
}  // namespace fusion
