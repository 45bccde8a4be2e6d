// The write-ahead log is moved into the file beside changes, and begun anew.
#include <atomic>
#include <filesystem>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/unit/store/store_fixture.h"

namespace fusion {
namespace {

class CheckpointTest : public StoreTest {
 protected:
  void SetUp() override {
    options_.checkpoint_pages = 100;
    StoreTest::SetUp();
  }
  int64_t LogBytes() { return static_cast<int64_t>(std::filesystem::file_size(path_ + "-wal")); }
  // Some 30 pages.
  std::string Change(const std::string& content) {
    absl::StatusOr<std::string> digest = store_->PutBlob(content + std::string(100000, 'b'), "", At(1));
    EXPECT_TRUE(digest.ok()) << digest.status();
    return digest.value_or("");
  }
};

TEST_F(CheckpointTest, TheLogStaysShortWhileOthersWrite) {
  std::atomic<bool> stop = false;
  std::thread keeper([&] {
    while (!stop) EXPECT_TRUE(store_->Checkpoint().ok());
  });
  std::vector<std::string> digests;
  for (int i = 0; i < 200; ++i) digests.push_back(Change(absl::StrCat(i)));
  stop = true;
  keeper.join();
  EXPECT_LT(LogBytes(), int64_t{200} * 100000 / 2) << "200 changes without a checkpoint";
  for (const std::string& digest : digests) EXPECT_TRUE(store_->GetBlob(digest).ok()) << digest;
  EXPECT_TRUE(store_->CheckIntegrity().ok());
  Reopen();
  for (const std::string& digest : digests) EXPECT_TRUE(store_->GetBlob(digest).ok()) << digest;
}

TEST_F(CheckpointTest, WhatIsInTheLogIsInTheFileAfterwards) {
  for (int i = 0; i < 10; ++i) Change(absl::StrCat(i));
  const int64_t before = static_cast<int64_t>(std::filesystem::file_size(path_));
  ASSERT_TRUE(store_->Checkpoint().ok());
  EXPECT_GE(static_cast<int64_t>(std::filesystem::file_size(path_)), before + 10 * 100000);
  // Nothing has changed since: nothing is done.
  EXPECT_TRUE(store_->Checkpoint().ok());
}

}  // namespace
}  // namespace fusion
