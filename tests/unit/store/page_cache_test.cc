#include "db/store/page_cache.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "db/store/sqlite_database.h"

namespace fusion {
namespace {

// Before any test uses SQLite.
[[maybe_unused]] const bool kQuick = (UseQuickPageCaches(), true);

TEST(LargestPageTest, WhatWasNeverThereIsNotCutOff) {
  LargestPage largest;
  EXPECT_FALSE(largest.CutOff(1));
  largest.Has(7);
  largest.Has(3);
  EXPECT_FALSE(largest.CutOff(8));
  EXPECT_TRUE(largest.CutOff(7));
  EXPECT_FALSE(largest.CutOff(7)) << "it is gone";
  EXPECT_TRUE(largest.CutOff(3)) << "this one was left";
}

TEST(LargestPageTest, APageThatComesBackLeavesNothingBehind) {
  LargestPage largest;
  largest.Has(5);
  largest.Moves(5, 1000);
  largest.Moves(1000, 4);
  EXPECT_FALSE(largest.CutOff(6));
  largest.Moves(4, 1000);
  EXPECT_TRUE(largest.CutOff(6)) << "it has not come back";
  EXPECT_FALSE(largest.CutOff(6));
}

TEST(LargestPageTest, SeveralPagesBeyondAllOthersAreFound) {
  LargestPage largest;
  largest.Has(5);
  largest.Moves(5, 1000);
  largest.Moves(4, 2000);
  largest.Moves(1000, 5);
  EXPECT_TRUE(largest.CutOff(6)) << "2000 is still there";
  EXPECT_FALSE(largest.CutOff(6));
  largest.Moves(5, 1000);
  largest.Has(1000);  // whoever asks for it may keep it
  largest.Moves(1000, 3);
  EXPECT_TRUE(largest.CutOff(6));
}

TEST(LargestPageTest, AllCanBeCutOff) {
  LargestPage largest;
  largest.Has(5);
  EXPECT_TRUE(largest.CutOff(0));
  EXPECT_FALSE(largest.CutOff(1));
}

// Random keys split pages in the middle of the tree, and SQLite then moves pages beyond the end and back.
TEST(PageCacheTest, CommitsDoNotSearchTheCache) {
  std::string folder = ::testing::TempDir() + "fusion_page_cache_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  auto database =
      Database::Open(folder + "/random.db", Database::Mode::kReadWrite, std::chrono::milliseconds(1000));
  ASSERT_TRUE(database.ok()) << database.status();
  ASSERT_TRUE((*database)->Execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF").ok());
  ASSERT_TRUE((*database)->Execute("CREATE TABLE keys (key TEXT PRIMARY KEY) STRICT, WITHOUT ROWID").ok());
  constexpr int kKeys = 3000;
  const int64_t before = PageCachesCutOff();
  std::mt19937_64 random(1);
  for (int i = 0; i < kKeys; ++i) {
    const std::string key = absl::StrCat(random(), std::string(100, 'k'));
    ASSERT_TRUE((*database)->Query("INSERT INTO keys VALUES (?1)", key).Run().ok());
  }
  EXPECT_EQ(PageCachesCutOff() - before, 0);
  EXPECT_EQ((*database)->Integer("SELECT count(*) FROM keys").value_or(0), kKeys);

  // What is there is cut off: a file that becomes smaller.
  ASSERT_TRUE((*database)->Execute("DELETE FROM keys WHERE key > '2'; VACUUM").ok());
  EXPECT_GT(PageCachesCutOff() - before, 0);
  Statement check = (*database)->Query("PRAGMA integrity_check");
  ASSERT_TRUE(check.Step().value_or(false));
  EXPECT_EQ(check.Text(0), "ok");
}

}  // namespace
}  // namespace fusion
