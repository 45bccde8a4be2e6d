#include "db/store/database_file.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "tests/unit/store/store_fixture.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

class DatabaseFileTest : public StoreTest {
 protected:
  static void Damage(const std::string& path) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(4096);
    file << std::string(8192, '\x5a');
  }
  bool HasJob(const std::string& job) { return store_->GetJob(job).ok(); }
  std::vector<std::string> FilesNamed(const std::string& part) {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      if (entry.path().filename().string().find(part) != std::string::npos)
        found.push_back(entry.path().string());
    return found;
  }
};

TEST_F(DatabaseFileTest, BackUpAndCheckWorkBesideAServer) {
  NewJob();
  const auto facts = BackUpDatabase(path_, folder_ + "/copy.db");
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->jobs, 1);
  EXPECT_GT(facts->schema_version, 0);
  EXPECT_EQ(facts->bytes, static_cast<int64_t>(std::filesystem::file_size(folder_ + "/copy.db")));
  // What is in the log of the running server counts.
  EXPECT_EQ(CheckDatabase(path_)->bytes, facts->bytes);
  NewJob();  // the store goes on
  EXPECT_EQ(CheckDatabase(path_)->jobs, 2);
  EXPECT_EQ(CheckDatabase(folder_ + "/copy.db")->jobs, 1);
  const auto again = BackUpDatabase(path_, folder_ + "/copy.db");
  EXPECT_EQ(again.status().code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(DatabaseFileTest, RestorePutsTheCopyInPlaceAndKeepsTheOldOne) {
  const std::string early = NewJob();
  ASSERT_TRUE(BackUpDatabase(path_, folder_ + "/copy.db").ok());
  const std::string late = NewJob();
  store_.reset();
  const auto restored = RestoreDatabase(folder_ + "/copy.db", path_, At(1763794760));
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(restored->kept, path_ + ".before-restore-20251122T065920Z");
  Reopen();
  EXPECT_TRUE(HasJob(early));
  EXPECT_FALSE(HasJob(late));
  store_.reset();
  // And back again: nothing was lost.
  const auto back = RestoreDatabase(restored->kept, path_, At(1763794760));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->kept, path_ + ".before-restore-20251122T065920Z-2");
  Reopen();
  EXPECT_TRUE(HasJob(late));
}

TEST_F(DatabaseFileTest, ALogThatWasNotYetInTheOldDatabaseStaysWithIt) {
  const std::string early = NewJob();
  ASSERT_TRUE(BackUpDatabase(path_, folder_ + "/copy.db").ok());
  const std::string late = NewJob();
  // As after a crash: the log has what the file has not.
  std::filesystem::create_directories(folder_ + "/crashed");
  const std::string crashed = folder_ + "/crashed/fusion.db";
  for (const char* suffix : {"", "-wal"}) std::filesystem::copy_file(path_ + suffix, crashed + suffix);
  ASSERT_GT(std::filesystem::file_size(crashed + "-wal"), 0u);
  const auto restored = RestoreDatabase(folder_ + "/copy.db", crashed, At(5));
  ASSERT_TRUE(restored.ok()) << restored.status();
  path_ = crashed;
  Reopen();
  EXPECT_TRUE(HasJob(early));
  EXPECT_FALSE(HasJob(late)) << "the old log was replayed onto the new database";
  path_ = restored->kept;
  Reopen();
  EXPECT_TRUE(HasJob(late));
}

TEST_F(DatabaseFileTest, ADamagedOldDatabaseIsKeptToo) {
  const std::string job = NewJob();
  ASSERT_TRUE(BackUpDatabase(path_, folder_ + "/copy.db").ok());
  store_.reset();
  Damage(path_);
  EXPECT_EQ(CheckDatabase(path_).status().code(), absl::StatusCode::kDataLoss);
  const auto restored = RestoreDatabase(folder_ + "/copy.db", path_, At(5));
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_TRUE(std::filesystem::exists(restored->kept));
  Reopen();
  EXPECT_TRUE(HasJob(job));
}

TEST_F(DatabaseFileTest, RestoreIsRefusedWhileAServerHoldsTheDatabase) {
  const std::string job = NewJob();
  ASSERT_TRUE(BackUpDatabase(path_, folder_ + "/copy.db").ok());
  const auto refused = RestoreDatabase(folder_ + "/copy.db", path_, At(5));
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("in use"));
  EXPECT_TRUE(HasJob(job));
  EXPECT_TRUE(FilesNamed("before-restore").empty());
}

TEST_F(DatabaseFileTest, BadInputsChangeNothing) {
  const std::string job = NewJob();
  ASSERT_TRUE(BackUpDatabase(path_, folder_ + "/damaged.db").ok());
  Damage(folder_ + "/damaged.db");
  std::ofstream(folder_ + "/text.db") << "no database at all, but long enough to have a header of a page";
  std::ofstream(folder_ + "/empty.db") << "";
  store_.reset();
  const auto code = [&](const std::string& input) {
    return RestoreDatabase(folder_ + "/" + input, path_, At(5)).status().code();
  };
  EXPECT_EQ(code("damaged.db"), absl::StatusCode::kDataLoss);
  EXPECT_EQ(code("text.db"), absl::StatusCode::kDataLoss);
  EXPECT_EQ(code("empty.db"), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(code("none.db"), absl::StatusCode::kNotFound);
  EXPECT_EQ(code("fusion.db"), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(FilesNamed("before-restore").empty());
  EXPECT_TRUE(FilesNamed("restored").empty());
  Reopen();
  EXPECT_TRUE(HasJob(job));
}

TEST_F(DatabaseFileTest, RestoresWhereThereWasNoDatabase) {
  const std::string job = NewJob();
  ASSERT_TRUE(BackUpDatabase(path_, folder_ + "/copy.db").ok());
  store_.reset();
  path_ = folder_ + "/new.db";
  const auto restored = RestoreDatabase(folder_ + "/copy.db", path_, At(5));
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(restored->kept, "");
  Reopen();
  EXPECT_TRUE(HasJob(job));
}

TEST_F(DatabaseFileTest, ARestoredDatabaseBelongsToTheOwnerOfItsFolder) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  NewJob();
  ASSERT_TRUE(BackUpDatabase(path_, folder_ + "/copy.db").ok());
  const std::string data = folder_ + "/data";
  std::filesystem::create_directory(data);
  ASSERT_EQ(chown(data.c_str(), 12345, 12346), 0);
  ASSERT_TRUE(RestoreDatabase(folder_ + "/copy.db", data + "/fusion.db", At(5)).ok());
  for (const char* file : {"/fusion.db", "/fusion.db.lock"}) {
    struct stat found {};
    ASSERT_EQ(stat((data + file).c_str(), &found), 0);
    EXPECT_EQ(found.st_uid, 12345u) << file;
    EXPECT_EQ(found.st_gid, 12346u) << file;
  }
}

TEST_F(DatabaseFileTest, ABackupOfADamagedDatabaseBlamesTheDatabase) {
  const std::string job = NewJob();
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(store_->AppendEvent(job, std::string(500, 'e'), At(i)).ok());
  store_.reset();
  {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(std::filesystem::file_size(path_) - 12288));
    file << std::string(8192, '\xa5');
  }
  const absl::Status damaged = BackUpDatabase(path_, folder_ + "/copy.db").status();
  EXPECT_EQ(damaged.code(), absl::StatusCode::kDataLoss) << damaged;
  EXPECT_THAT(std::string(damaged.message()), HasSubstr("store " + path_ + ": the file is damaged"));
  EXPECT_THAT(std::string(damaged.message()), HasSubstr("copy.db is as damaged"));
  // One that cannot even be copied.
  std::filesystem::resize_file(path_, 3 * 4096 + 5);
  const absl::Status cut = BackUpDatabase(path_, folder_ + "/copy2.db").status();
  EXPECT_EQ(cut.code(), absl::StatusCode::kDataLoss) << cut;
  EXPECT_THAT(std::string(cut.message()), HasSubstr("store " + path_ + ":"));
  EXPECT_EQ(cut.message().find("copy2.db"), std::string::npos) << cut;
}

TEST_F(DatabaseFileTest, ABackupThatCannotBeWrittenBlamesTheBackup) {
  NewJob();
  const std::string output = folder_ + "/no such folder/copy.db";
  const absl::Status refused = BackUpDatabase(path_, output).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr(output));
  EXPECT_EQ(refused.message().find(path_), std::string::npos) << refused;
}

TEST_F(DatabaseFileTest, ALogThatIsDamagedStaysWithTheOldDatabase) {
  const std::string job = NewJob();
  ASSERT_TRUE(BackUpDatabase(path_, folder_ + "/copy.db").ok());
  for (int i = 0; i < 9; ++i) ASSERT_TRUE(store_->AppendEvent(job, std::string(3000, 'e'), At(i)).ok());
  std::filesystem::create_directories(folder_ + "/crashed");
  const std::string crashed = folder_ + "/crashed/fusion.db";
  for (const char* suffix : {"", "-wal"}) std::filesystem::copy_file(path_ + suffix, crashed + suffix);
  const auto log_bytes = std::filesystem::file_size(crashed + "-wal");
  {
    std::fstream file(crashed + "-wal", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(32 + 24 + 1000);
    file << "damage";
  }
  const auto restored = RestoreDatabase(folder_ + "/copy.db", crashed, At(5));
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(std::filesystem::file_size(restored->kept + "-wal"), log_bytes) << "somebody may read it yet";
  std::filesystem::remove(crashed);
  std::filesystem::copy_file(path_ + "-wal", crashed + "-wal");
  ASSERT_TRUE(RestoreDatabase(folder_ + "/copy.db", crashed, At(6)).ok());
  EXPECT_FALSE(std::filesystem::exists(crashed + "-wal")) << "it is another database's";
  store_.reset();
  path_ = crashed;
  Reopen();
  EXPECT_TRUE(HasJob(job));
}

TEST_F(DatabaseFileTest, ChecksSayWhatTheyFound) {
  store_.reset();
  EXPECT_EQ(CheckDatabase(folder_ + "/none.db").status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/none.db"));
  Damage(path_);
  const absl::Status damaged = CheckDatabase(path_).status();
  EXPECT_EQ(damaged.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(damaged.message()), HasSubstr(path_));
}

}  // namespace
}  // namespace fusion
