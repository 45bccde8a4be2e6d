// Bytes on the disk that are not what they were.
#include "db/store/sqlite_database.h"
#include "tests/unit/store/store_fixture.h"

namespace fusion {
namespace {

class SqliteDamageTest : public StoreTest {
 protected:
  void DamageBlobs() {
    auto database = Database::Open(path_, Database::Mode::kReadWrite, std::chrono::seconds(5));
    ASSERT_TRUE(database.ok()) << database.status();
    ASSERT_TRUE((*database)->Execute("UPDATE blobs SET data = x'616263ff'").ok());
  }
};

// FIPS 180-4, appendix B.1.
constexpr char kDigestOfAbc[] = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

TEST_F(SqliteDamageTest, ABlobDamagedOnTheDiskIsNoticedAndCanBePutAgain) {
  ASSERT_TRUE(store_->PutBlob("abc", "", At(1)).ok());
  DamageBlobs();
  EXPECT_TRUE(absl::IsDataLoss(store_->GetBlob(kDigestOfAbc).status()));
  EXPECT_EQ(store_->Statistics()->damaged_blobs, 1);
  EXPECT_EQ(store_->Statistics()->rebuilt_blobs, 0);
  ASSERT_TRUE(store_->PutBlob("abc", "", At(2)).ok());
  EXPECT_EQ(*store_->GetBlob(kDigestOfAbc), "abc");
  ASSERT_TRUE(store_->PutBlob("abc", "", At(3)).ok());
  EXPECT_EQ(store_->Statistics()->damaged_blobs, 1);
  EXPECT_EQ(store_->Statistics()->rebuilt_blobs, 1) << "it was sound already the last time";
}

TEST_F(SqliteDamageTest, ADamagedBinaryIsRemovedWithItsBuildsAndBuiltAgain) {
  const std::string built_it = NewJob(), found_it = NewJob();
  Ensure(built_it, Build("k"));
  const std::vector<TaskRecord> tasks = ClaimBuilds("w", 1, At(11));
  ASSERT_TRUE(store_->PutBlob("abc", "", At(12)).ok());
  const BuildRecord build{"k", "OK", kDigestOfAbc, "", 1, At(12)};
  ASSERT_TRUE(*store_->CompleteTask({{tasks[0].id, tasks[0].fence}, "result", build}, At(12)));
  ASSERT_TRUE(store_->PutBuild({"same", "OK", kDigestOfAbc, "", 1, At(12)}).ok());
  ASSERT_TRUE(store_->PutBuild({"bad", "COMPILE_ERROR", "", "error: x", 0.25, At(12)}).ok());
  ASSERT_EQ(store_->UseBuilds(found_it, {"k"}, At(13))->size(), 1u);
  DamageBlobs();

  const absl::Status damaged = store_->GetBlob(kDigestOfAbc).status();
  EXPECT_TRUE(absl::IsDataLoss(damaged)) << damaged;
  EXPECT_NE(damaged.message().find("it is removed"), std::string::npos) << damaged;
  EXPECT_TRUE(absl::IsNotFound(store_->GetBlob(kDigestOfAbc).status()));
  EXPECT_FALSE(*store_->HasBlob(kDigestOfAbc));
  EXPECT_EQ(store_->FindBuilds({"k", "same", "bad"})->size(), 1u) << "what did not compile has no bytes";
  EXPECT_TRUE(store_->CheckIntegrity().ok());
  // Also by the jobs that had it.
  const TaskRecord again = Ensure(built_it, Build("k"));
  EXPECT_EQ(again.state, TaskState::kQueued);
  EXPECT_EQ(Ensure(found_it, Build("k")).id, again.id);
}

TEST_F(SqliteDamageTest, ADamagedArtifactStaysForABackupToBeRestored) {
  const std::string job = NewJob();
  ASSERT_TRUE(store_->PutBlob("abc", "", At(1)).ok());
  ASSERT_TRUE(store_->PutArtifact(job, 1, kDigestOfAbc).ok());
  ASSERT_TRUE(store_->PutBuild({"k", "OK", kDigestOfAbc, "", 1, At(3)}).ok());
  DamageBlobs();
  for (int i = 0; i < 2; ++i) {
    const absl::Status damaged = store_->GetBlob(kDigestOfAbc).status();
    EXPECT_TRUE(absl::IsDataLoss(damaged)) << damaged;
    EXPECT_NE(damaged.message().find("restore a backup"), std::string::npos) << damaged;
    EXPECT_EQ(store_->Statistics()->damaged_blobs, 1) << "however often it is asked for";
  }
  EXPECT_EQ(*store_->GetArtifact(job, 1), kDigestOfAbc);
  EXPECT_TRUE(store_->FindBuilds({"k"})->empty()) << "which would be of the same bytes";
  ASSERT_TRUE(store_->PutBlob("abc", "", At(4)).ok());
  EXPECT_EQ(*store_->GetBlob(kDigestOfAbc), "abc");
}

}  // namespace
}  // namespace fusion
