#include "tests/unit/store_conformance/store_conformance.h"

namespace fusion {
namespace {

class BuildsTest : public StoreConformanceTest {};

// FIPS 180-4, appendix B.1.
constexpr char kDigestOfAbc[] = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

TEST_P(BuildsTest, BlobsAreFoundByTheirContent) {
  EXPECT_EQ(*store_->PutBlob("abc", "", At(1)), kDigestOfAbc);
  EXPECT_EQ(*store_->PutBlob("abc", kDigestOfAbc, At(2)), kDigestOfAbc);
  Reopen();
  EXPECT_TRUE(*store_->HasBlob(kDigestOfAbc));
  EXPECT_EQ(*store_->GetBlob(kDigestOfAbc), "abc");
}

TEST_P(BuildsTest, EmptyAndLargeBlobsComeBackAsTheyWere) {
  std::string large(5 << 20, '\0');
  for (size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>(i * 2654435761u >> 13);
  for (const std::string& data : {std::string(), std::string("\0", 1), large}) {
    absl::StatusOr<std::string> digest = store_->PutBlob(data, "", At(1));
    ASSERT_TRUE(digest.ok()) << digest.status();
    EXPECT_TRUE(*store_->GetBlob(*digest) == data) << data.size() << " bytes";
  }
}

TEST_P(BuildsTest, BytesThatDoNotMatchTheirDigestAreRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(store_->PutBlob("abd", kDigestOfAbc, At(1)).status()));
  EXPECT_FALSE(*store_->HasBlob(kDigestOfAbc));
  EXPECT_TRUE(absl::IsNotFound(store_->GetBlob(kDigestOfAbc).status()));
}

TEST_P(BuildsTest, TheBuildCacheKeepsWhatItWasGiven) {
  ASSERT_TRUE(store_->PutBlob("abc", "", At(1)).ok());
  ASSERT_TRUE(store_->PutBuild({"good", "OK", kDigestOfAbc, "a warning", 1.5, At(3)}).ok());
  ASSERT_TRUE(store_->PutBuild({"bad", "COMPILE_ERROR", "", "error: x", 0.25, At(4)}).ok());
  Reopen();
  absl::StatusOr<std::map<std::string, BuildRecord>> found = store_->FindBuilds({"good", "bad", "unknown"});
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->size(), 2u);
  EXPECT_EQ(found->at("good").binary_digest, kDigestOfAbc);
  EXPECT_EQ(found->at("good").log, "a warning");
  EXPECT_EQ(found->at("good").seconds, 1.5);
  EXPECT_EQ(found->at("good").created, At(3));
  EXPECT_EQ(found->at("bad").outcome, "COMPILE_ERROR");
}

TEST_P(BuildsTest, ABuildWhoseBinaryIsGoneIsUnknown) {
  ASSERT_TRUE(store_->PutBuild({"k", "OK", kDigestOfAbc, "", 1, At(3)}).ok());
  EXPECT_TRUE(store_->FindBuilds({"k"})->empty());
  ASSERT_TRUE(store_->PutBlob("abc", "", At(1)).ok());
  EXPECT_EQ(store_->FindBuilds({"k"})->size(), 1u);
}

TEST_P(BuildsTest, ArtifactsBelongToAJobAndARank) {
  const std::string job = NewJob();
  ASSERT_TRUE(store_->PutBlob("abc", "", At(1)).ok());
  ASSERT_TRUE(store_->PutArtifact(job, 1, kDigestOfAbc).ok());
  Reopen();
  EXPECT_EQ(*store_->GetArtifact(job, 1), kDigestOfAbc);
  EXPECT_TRUE(absl::IsNotFound(store_->GetArtifact(job, 2).status()));
  EXPECT_TRUE(absl::IsNotFound(store_->PutArtifact("jobs/none", 1, kDigestOfAbc)));
  EXPECT_TRUE(absl::IsNotFound(store_->PutArtifact(job, 2, "sha256:none")));
  EXPECT_TRUE(absl::IsInvalidArgument(store_->PutArtifact(job, 0, kDigestOfAbc)));
}

FOR_EVERY_STORE(BuildsTest);

}  // namespace
}  // namespace fusion
