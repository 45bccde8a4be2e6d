// What is removed from the build cache, in which order, and what is not.
#include <gmock/gmock.h>

#include "tests/unit/store_conformance/store_conformance.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int kBytes = 100;  // of each binary
constexpr int kMany = 1000;

class BuildCacheTest : public StoreConformanceTest {
 protected:
  // A build with a binary of its own, made at the time.
  std::string Put(const std::string& key, int64_t second) {
    const std::string digest = Blob(key, second);
    EXPECT_TRUE(store_->PutBuild({key, "OK", digest, "", 1, At(second)}).ok());
    return digest;
  }
  std::string Blob(const std::string& name, int64_t second) {
    return store_->PutBlob(name + std::string(kBytes - name.size(), '.'), "", At(second)).value_or("");
  }
  BuildCacheTrim Trim(int64_t max_bytes, int limit = kMany, int64_t unreported_before = 0) {
    const absl::StatusOr<BuildCacheTrim> trim =
        store_->TrimBuildCache(max_bytes, At(unreported_before), limit);
    EXPECT_TRUE(trim.ok()) << trim.status();
    EXPECT_TRUE(store_->CheckIntegrity().ok());
    return trim.value_or(BuildCacheTrim());
  }
  // Those of a, b, c, d, e that the cache knows.
  std::vector<std::string> Known() {
    std::vector<std::string> keys;
    const auto found = store_->FindBuilds({"a", "b", "c", "d", "e"});
    EXPECT_TRUE(found.ok()) << found.status();
    if (found.ok())
      for (const auto& [key, build] : *found) keys.push_back(key);
    return keys;
  }
};

TEST_P(BuildCacheTest, NothingIsRemovedWithinTheSize) {
  Put("a", 1);
  Put("b", 2);
  const BuildCacheTrim trim = Trim(2 * kBytes);
  EXPECT_EQ(trim.bytes, 2 * kBytes);
  EXPECT_EQ(trim.blobs, 2);
  EXPECT_EQ(trim.evicted, 0);
  EXPECT_THAT(Known(), ElementsAre("a", "b"));
}

TEST_P(BuildCacheTest, TheLeastRecentlyUsedGoFirst) {
  for (const char* key : {"b", "a", "c", "d"}) Put(key, key[0]);
  const std::string job = NewJob();
  ASSERT_EQ(store_->UseBuilds(job, {"a", "unknown"}, At(1000))->size(), 1u);
  EndJob(job);
  Reopen();
  const BuildCacheTrim trim = Trim(2 * kBytes + 50);
  EXPECT_EQ(trim.evicted, 2);
  EXPECT_EQ(trim.evicted_bytes, 2 * kBytes);
  EXPECT_EQ(trim.bytes, 2 * kBytes);
  EXPECT_THAT(Known(), ElementsAre("a", "d"));
}

TEST_P(BuildCacheTest, ABinaryThatIsMadeAgainIsNew) {
  Put("a", 1);
  Put("b", 2);
  Put("a", 3);
  Trim(kBytes);
  EXPECT_THAT(Known(), ElementsAre("a"));
}

TEST_P(BuildCacheTest, WhatAnUnfinishedJobFoundStaysUntilItEnds) {
  Put("a", 1);
  Put("b", 2);
  const std::string job = NewJob(), other = NewJob();
  ASSERT_TRUE(store_->UseBuilds(job, {"a"}, At(3)).ok());
  ASSERT_TRUE(store_->UseBuilds(other, {"a"}, At(3)).ok());
  Reopen();
  EXPECT_EQ(Trim(0).evicted, 1);
  EXPECT_THAT(Known(), ElementsAre("a"));
  EndJob(job);
  EXPECT_EQ(Trim(0).evicted, 0) << "the other job";
  EndJob(other);
  EXPECT_EQ(Trim(0).evicted, 1);
  EXPECT_THAT(Known(), IsEmpty());
}

TEST_P(BuildCacheTest, WhatAnUnfinishedJobHasATaskForStaysUntilItEnds) {
  const std::string job = NewJob();
  Ensure(job, Build("a"));
  Ensure(job, Build("b"));
  const std::vector<TaskRecord> tasks = ClaimBuilds("w", 1, At(11));
  const BuildRecord build{"a", "OK", Blob("a", 12), "", 1, At(12)};
  ASSERT_TRUE(*store_->CompleteTask({{tasks[0].id, tasks[0].fence}, "result", build}, At(12)));
  Put("c", 13);
  EXPECT_EQ(Trim(0).evicted, 1);
  EXPECT_THAT(Known(), ElementsAre("a"));
  EndJob(job);
  EXPECT_EQ(Trim(0).evicted, 1);
  EXPECT_TRUE(Ensure(NewJob(), Build("a")).state == TaskState::kQueued) << "it is to be built anew";
}

TEST_P(BuildCacheTest, AJobThatHasEndedKeepsNothing) {
  Put("a", 1);
  const std::string job = NewJob();
  EndJob(job);
  EXPECT_EQ(store_->UseBuilds(job, {"a"}, At(3))->size(), 1u);
  EXPECT_EQ(Trim(0).evicted, 1);
}

TEST_P(BuildCacheTest, ArtifactsAreNoPartOfIt) {
  const std::string job = NewJob();
  const std::string artifact = Blob("artifact", 1), both = Put("a", 1);
  Put("b", 2);
  ASSERT_TRUE(store_->PutArtifact(job, 1, artifact).ok());
  ASSERT_TRUE(store_->PutArtifact(job, 2, both).ok());
  EndJob(job);
  EXPECT_EQ(Trim(kMany).bytes, kBytes);
  const BuildCacheTrim trim = Trim(0, kMany, 100);
  EXPECT_EQ(trim.evicted, 1);
  EXPECT_EQ(trim.bytes, 0);
  EXPECT_TRUE(store_->GetBlob(artifact).ok());
  EXPECT_TRUE(store_->GetBlob(both).ok());
}

TEST_P(BuildCacheTest, ABinaryMayWaitForItsReport) {
  const std::string digest = Blob("a", 50);
  EXPECT_EQ(Trim(0, kMany, 50).evicted, 0);
  EXPECT_TRUE(*store_->HasBlob(digest));
  Blob("a", 60);  // its worker was lost, and the next one stored the same
  EXPECT_EQ(Trim(0, kMany, 60).evicted, 0);
  EXPECT_EQ(Trim(0, kMany, 61).evicted, 1);
  EXPECT_FALSE(*store_->HasBlob(digest));
}

TEST_P(BuildCacheTest, BuildsOfOneBinaryGoTogether) {
  const std::string digest = Put("a", 1);
  ASSERT_TRUE(store_->PutBuild({"b", "OK", digest, "", 1, At(2)}).ok());
  const std::string job = NewJob();
  ASSERT_TRUE(store_->UseBuilds(job, {"b"}, At(3)).ok());
  EXPECT_EQ(Trim(0).evicted, 0);
  EndJob(job);
  EXPECT_EQ(Trim(0).evicted, 1);
  EXPECT_THAT(Known(), IsEmpty());
}

TEST_P(BuildCacheTest, FailedBuildsAreKnownOn) {
  ASSERT_TRUE(store_->PutBuild({"a", "COMPILE_ERROR", "", "error: x", 0.25, At(1)}).ok());
  ASSERT_EQ(store_->UseBuilds(NewJob(), {"a"}, At(3))->at("a").log, "error: x");
  EXPECT_EQ(Trim(0, kMany, 100).evicted, 0);
  EXPECT_THAT(Known(), ElementsAre("a"));
}

TEST_P(BuildCacheTest, OneCallRemovesAtMostAsManyAsItMay) {
  for (const char* key : {"a", "b", "c"}) Put(key, key[0]);
  const BuildCacheTrim trim = Trim(0, 2);
  EXPECT_EQ(trim.evicted, 2);
  EXPECT_EQ(trim.bytes, kBytes);
  EXPECT_EQ(Trim(0, 2).evicted, 1);
}

FOR_EVERY_STORE(BuildCacheTest);

}  // namespace
}  // namespace fusion
