#include "db/store/log_check.h"

#include <gmock/gmock.h>

#include <fstream>
#include <string>
#include <vector>

#include "db/store/database_file.h"
#include "tests/unit/store/store_fixture.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

constexpr int kHeader = 32, kFrame = 24 + 4096;

// The files of a store that was killed, in a folder of their own.
class LogCheckTest : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    const std::string job = NewJob();
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(store_->AppendEvent(job, std::string(3000, 'e'), At(i)).ok());
    std::filesystem::create_directory(folder_ + "/killed");
    killed_ = folder_ + "/killed/fusion.db";
    for (const char* suffix : {"", "-wal", ".lock"})
      std::filesystem::copy_file(path_ + suffix, killed_ + suffix);
    log_ = Read(killed_ + "-wal");
    frames_ = static_cast<int>(log_.size() - kHeader) / kFrame;
    ASSERT_GT(frames_, 20);
  }
  static std::string Read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  // The log with one byte changed.
  absl::Status CheckDamagedAt(size_t position) {
    std::string damaged = log_;
    damaged[position] ^= 0x10;
    std::ofstream(killed_ + "-wal", std::ios::binary) << damaged;
    return CheckLog(killed_);
  }
  bool Commits(int frame) const {
    return log_.substr(kHeader + frame * kFrame + 4, 4) != std::string(4, '\0');
  }

  std::string killed_, log_;
  int frames_ = 0;
};

TEST_F(LogCheckTest, AWholeLogIsGood) {
  EXPECT_TRUE(CheckLog(killed_).ok());
  EXPECT_TRUE(CheckLog(folder_ + "/nothing.db").ok());
}

TEST_F(LogCheckTest, EveryByteOfTheHeaderCounts) {
  for (int i = 0; i < kHeader; ++i) EXPECT_TRUE(absl::IsDataLoss(CheckDamagedAt(i))) << i;
}

TEST_F(LogCheckTest, DamageBehindWhichChangesWereMadeSafeIsFound) {
  // In the number of a page, the commit mark, the salts, the checksums and the page.
  for (int frame = 0; frame + 12 < frames_; ++frame)
    for (const int offset : {1, 10, 14, 17, 22, 24, 2000, 4119}) {
      const absl::Status found = CheckDamagedAt(kHeader + frame * kFrame + offset);
      EXPECT_TRUE(absl::IsDataLoss(found)) << "frame " << frame << ", byte " << offset << ": " << found;
    }
  EXPECT_THAT(std::string(CheckDamagedAt(kHeader + 3 * kFrame + 100).message()), HasSubstr("frame 4"));
}

TEST_F(LogCheckTest, TheLastTransactionMayBeTorn) {
  int begin = frames_ - 1;
  while (!Commits(begin - 1)) --begin;
  for (int frame = begin; frame < frames_; ++frame) {
    EXPECT_TRUE(CheckDamagedAt(kHeader + frame * kFrame + 500).ok()) << frame;
    std::ofstream(killed_ + "-wal", std::ios::binary) << log_.substr(0, kHeader + frame * kFrame + 500);
    EXPECT_TRUE(CheckLog(killed_).ok()) << frame;
  }
  std::ofstream(killed_ + "-wal", std::ios::binary) << log_.substr(0, 20);
  EXPECT_TRUE(CheckLog(killed_).ok()) << "a header that was never complete";
}

TEST_F(LogCheckTest, WhatEarlierLogsLeftBehindTheEndIsNoDamage) {
  // The log is begun anew with other salts when all of it is in the file, and is not cut.
  ASSERT_TRUE(store_->Checkpoint().ok());
  store_.reset();
  options_.checkpoint_pages = 1;
  Reopen();
  const std::string job = NewJob();
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 30 - 10 * round; ++i)
      ASSERT_TRUE(store_->AppendEvent(job, std::string(3000, 'f'), At(i)).ok());
    ASSERT_TRUE(store_->Checkpoint().ok());
  }
  ASSERT_TRUE(store_->AppendEvent(job, "the first of a new log", At(1)).ok());
  std::filesystem::copy_file(path_ + "-wal", killed_ + "-wal",
                             std::filesystem::copy_options::overwrite_existing);
  const std::string log = Read(killed_ + "-wal");
  ASSERT_GT(log.size(), size_t{kHeader + 10 * kFrame});
  ASSERT_NE(log.substr(16, 8), log.substr(log.size() - kFrame + 8, 8))
      << "the last frame is an earlier log's";
  EXPECT_TRUE(CheckLog(killed_).ok());
}

// What a server finds that was killed, with damage done meanwhile.
class UncleanEndTest : public LogCheckTest {
 protected:
  absl::Status Open() { return OpenSqliteStore(killed_).status(); }
  void DamageFile(const std::string& path, std::streamoff position, const std::string& bytes) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(position);
    file << bytes;
  }
};

TEST_F(UncleanEndTest, AWholeDatabaseIsOpenedAndThenClosedInOrder) {
  EXPECT_FALSE(ClosedInOrder(killed_));
  EXPECT_TRUE(Open().ok());
  EXPECT_TRUE(ClosedInOrder(killed_));
  EXPECT_TRUE(Open().ok());
}

TEST_F(UncleanEndTest, ADamagedLogIsRefusedAndLeftAsItIs) {
  const absl::Status damaged = CheckDamagedAt(kHeader + 2 * kFrame + 300);
  const std::string before = Read(killed_ + "-wal");
  for (int time = 0; time < 2; ++time) {
    const absl::Status opened = Open();
    EXPECT_TRUE(absl::IsDataLoss(opened)) << opened;
    EXPECT_THAT(std::string(opened.message()), HasSubstr(killed_ + "-wal"));
    EXPECT_EQ(Read(killed_ + "-wal"), before);
  }
}

TEST_F(UncleanEndTest, DamagedPagesAreRefusedAgainAndAgain) {
  ASSERT_TRUE(store_->Checkpoint().ok());
  store_.reset();  // all of it is in the file now
  std::filesystem::copy_file(path_, killed_, std::filesystem::copy_options::overwrite_existing);
  std::filesystem::remove(killed_ + "-wal");
  const auto size = static_cast<std::streamoff>(std::filesystem::file_size(killed_));
  DamageFile(killed_, size - 3 * 4096, std::string(4096, '\xa5'));
  for (int time = 0; time < 2; ++time) {
    const absl::Status opened = Open();
    EXPECT_TRUE(absl::IsDataLoss(opened)) << opened;
    EXPECT_THAT(std::string(opened.message()), HasSubstr("damaged"));
  }
}

TEST_F(UncleanEndTest, FilesThatAreCutOrGarbageAreRefused) {
  store_.reset();
  const auto with = [&](const std::string& content) {
    std::ofstream(killed_, std::ios::binary) << content;
    std::filesystem::remove(killed_ + "-wal");
    return Open();
  };
  const std::string whole = Read(path_);
  ASSERT_GT(whole.size(), 10u * 4096);
  EXPECT_TRUE(absl::IsDataLoss(with(whole.substr(0, 5 * 4096)))) << "cut at a page";
  EXPECT_TRUE(absl::IsDataLoss(with(whole.substr(0, 5 * 4096 + 77)))) << "cut in a page";
  EXPECT_TRUE(absl::IsDataLoss(with(whole.substr(0, 60)))) << "cut in the header";
  EXPECT_TRUE(absl::IsDataLoss(with(""))) << "cut to nothing";
  EXPECT_TRUE(absl::IsDataLoss(with(std::string(100, '\x7f') + whole.substr(100)))) << "a garbage header";
  std::string other = whole;
  other.replace(60, 12, std::string(12, '\x01'));  // the version of the schema, and whose file it is
  EXPECT_TRUE(absl::IsDataLoss(with(other))) << "a header of another program";
  EXPECT_TRUE(with(whole).ok()) << with(whole);
}

TEST_F(UncleanEndTest, AFileThatIsLostBesideItsLogIsNotBegunAnew) {
  std::filesystem::remove(killed_);
  const absl::Status opened = Open();
  EXPECT_TRUE(absl::IsDataLoss(opened)) << opened;
  EXPECT_FALSE(std::filesystem::exists(killed_));
  EXPECT_GT(std::filesystem::file_size(killed_ + "-wal"), 0u);
}

TEST_F(UncleanEndTest, WhereNothingWasKeptYetAFileIsMadeAnew) {
  store_.reset();
  for (const char* suffix : {"", "-wal"}) std::filesystem::remove(killed_ + suffix);
  EXPECT_TRUE(Open().ok()) << "moved away";
  std::filesystem::remove(killed_);
  std::ofstream(killed_, std::ios::binary) << "";
  std::ofstream(killed_ + ".lock") << "4711\n";
  EXPECT_TRUE(Open().ok()) << "a first start that ended at once";
}

}  // namespace
}  // namespace fusion
