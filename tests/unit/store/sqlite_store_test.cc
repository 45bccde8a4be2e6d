// Opening, restarts, damage, full disks, backups.
#include "db/store/sqlite_store.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "db/store/migrations.h"
#include "tests/unit/store/store_fixture.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;
using SqliteStoreTest = StoreTest;

std::unique_ptr<Database> OpenRaw(const std::string& path) {
  auto database = Database::Open(path, Database::Mode::kReadWrite, std::chrono::seconds(5));
  EXPECT_TRUE(database.ok()) << database.status();
  return database.ok() ? *std::move(database) : nullptr;
}

TEST_F(SqliteStoreTest, ASecondOwnerIsRefusedByName) {
  const absl::Status second = OpenSqliteStore(path_).status();
  EXPECT_TRUE(absl::IsUnavailable(second)) << second;
  EXPECT_THAT(std::string(second.message()), HasSubstr("process " + std::to_string(getpid())));
  store_.reset();
  EXPECT_TRUE(OpenSqliteStore(path_).ok()) << "the lock ends with its owner";
}

TEST_F(SqliteStoreTest, AFileLockedByAnotherWriterIsUnavailable) {
  store_.reset();
  options_.busy_timeout = std::chrono::milliseconds(1);
  Reopen();
  std::unique_ptr<Database> other = OpenRaw(path_);
  Transaction transaction(*other);
  ASSERT_TRUE(transaction.status().ok());
  const absl::Status created = store_->CreateJob(JobRecord{}, At(1)).status();
  EXPECT_TRUE(absl::IsUnavailable(created)) << created;
  EXPECT_THAT(std::string(created.message()), HasSubstr("locked"));
  EXPECT_TRUE(store_->ListJobs(1, "").ok()) << "readers go on";
}

TEST_F(SqliteStoreTest, NamesThatAreNoFilesAreRefused) {
  for (const std::string name : {"", ":memory:", "file:x?mode=memory"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(OpenSqliteStore(name).status())) << name;
  }
  EXPECT_FALSE(OpenSqliteStore(folder_ + "/no such folder/fusion.db").ok());
}

TEST_F(SqliteStoreTest, AnotherProgramsFileIsRefusedAndLeftAlone) {
  const std::string path = folder_ + "/foreign.db";
  ASSERT_TRUE(OpenRaw(path)->Execute("CREATE TABLE theirs (x)").ok());
  const absl::Status opened = OpenSqliteStore(path).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(opened)) << opened;
  EXPECT_THAT(std::string(opened.message()), HasSubstr("another program"));
  EXPECT_EQ(*OpenRaw(path)->Integer("SELECT count(*) FROM sqlite_schema"), 1);
}

TEST_F(SqliteStoreTest, ATextFileIsRefused) {
  const std::string path = folder_ + "/notes.txt";
  std::ofstream(path) << std::string(5000, 'x');
  const absl::Status opened = OpenSqliteStore(path).status();
  EXPECT_TRUE(absl::IsDataLoss(opened)) << opened;
}

TEST_F(SqliteStoreTest, DamageIsReported) {
  const std::string job = NewJob();
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(store_->AppendEvent(job, std::string(500, 'e'), At(i)).ok());
  EXPECT_TRUE(store_->CheckIntegrity().ok());
  store_.reset();
  const auto size = std::filesystem::file_size(path_);
  ASSERT_GT(size, 40960u);
  {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(size - 12288));
    file << std::string(8192, '\xa5');
  }
  absl::StatusOr<std::unique_ptr<Store>> damaged = OpenSqliteStore(path_);
  const absl::Status found = damaged.ok() ? (*damaged)->CheckIntegrity() : damaged.status();
  EXPECT_TRUE(absl::IsDataLoss(found)) << found;
}

TEST_F(SqliteStoreTest, AFullDiskIsSaidAndLosesNothing) {
  store_.reset();
  options_.max_bytes = 1 << 20;
  Reopen();
  const std::string job = NewJob();
  absl::Status full;
  int stored = 0;
  while (full.ok() && stored < 1000) {
    full = store_->AppendEvent(job, std::string(20000, 'e'), At(1)).status();
    stored += full.ok() ? 1 : 0;
  }
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted) << full;
  EXPECT_THAT(std::string(full.message()), HasSubstr("full"));
  EXPECT_GT(stored, 0);
  EXPECT_EQ(static_cast<int>(store_->EventsAfter(job, 0, 1000)->size()), stored);
  EXPECT_TRUE(store_->CheckIntegrity().ok());

  options_.max_bytes = 0;
  Reopen();
  EXPECT_EQ(*store_->AppendEvent(job, "room again", At(2)), stored + 1);
}

TEST_F(SqliteStoreTest, ABackupIsACompleteStore) {
  const std::string job = NewJob();
  const std::string copy = folder_ + "/copy.db";
  ASSERT_TRUE(store_->Backup(copy).ok());
  EXPECT_EQ(store_->Backup(copy).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_FALSE(std::filesystem::exists(copy + ".partial"));
  NewJob();
  absl::StatusOr<std::unique_ptr<Store>> backup = OpenSqliteStore(copy);
  ASSERT_TRUE(backup.ok()) << backup.status();
  EXPECT_TRUE((*backup)->GetJob(job).ok());
  EXPECT_EQ((*backup)->ListJobs(0, "")->jobs.size(), 1u);
  EXPECT_TRUE((*backup)->CheckIntegrity().ok());
}

TEST_F(SqliteStoreTest, ABackupThatCannotBeWrittenLeavesNothing) {
  EXPECT_FALSE(store_->Backup(folder_ + "/no such folder/copy.db").ok());
}

TEST_F(SqliteStoreTest, ReadersSeeWhatWasWrittenBeforeThem) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {  // more than there are readers
    threads.emplace_back([this] {
      for (int i = 0; i < 5; ++i) {
        const std::string job = NewJob();
        EXPECT_TRUE(store_->GetJob(job).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store_->ListJobs(100, "")->jobs.size(), 40u);
}

TEST_F(SqliteStoreTest, WhatWasAcknowledgedSurvivesAKill) {
  const std::string job = NewJob();
  store_.reset();  // a connection must not be carried across a fork
  int acknowledged[2];
  ASSERT_EQ(pipe(acknowledged), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    absl::StatusOr<std::unique_ptr<Store>> store = OpenSqliteStore(path_);
    if (!store.ok()) _exit(1);
    while (true) {
      absl::StatusOr<int64_t> sequence = (*store)->AppendEvent(job, "event", At(1));
      if (!sequence.ok() || write(acknowledged[1], &*sequence, sizeof(*sequence)) != sizeof(*sequence))
        _exit(2);
    }
  }
  close(acknowledged[1]);
  int64_t last = 0;
  while (last < 5) ASSERT_EQ(read(acknowledged[0], &last, sizeof(last)), static_cast<ssize_t>(sizeof(last)));
  kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  // What it acknowledged between the fifth and its end.
  while (read(acknowledged[0], &last, sizeof(last)) == static_cast<ssize_t>(sizeof(last))) continue;
  close(acknowledged[0]);

  Reopen();  // also: the lock of a killed process does not stay
  EXPECT_TRUE(store_->CheckIntegrity().ok());
  absl::StatusOr<std::vector<EventRecord>> events = store_->EventsAfter(job, 0, 1000000);
  ASSERT_TRUE(events.ok()) << events.status();
  // One more may have been stored without having been acknowledged.
  EXPECT_GE(static_cast<int64_t>(events->size()), last);
  EXPECT_LE(static_cast<int64_t>(events->size()), last + 1);
}

TEST_F(SqliteStoreTest, TheFileIsKeptSafely) {
  std::unique_ptr<Database> raw = OpenRaw(path_);
  Statement mode = raw->Query("PRAGMA journal_mode");
  ASSERT_TRUE(*mode.Step());
  EXPECT_EQ(mode.Text(0), "wal");
  EXPECT_EQ(*raw->Integer("PRAGMA user_version"), static_cast<int64_t>(EmbeddedMigrations().size()));
  EXPECT_EQ(*raw->Integer("SELECT count(*) FROM pragma_table_list WHERE type = 'table' AND schema = 'main' "
                          "AND name NOT LIKE 'sqlite_%' AND strict = 0"),
            0);
  EXPECT_GE(*raw->Integer("SELECT count(*) FROM pragma_table_list WHERE strict = 1"), 11);
}

}  // namespace
}  // namespace fusion
