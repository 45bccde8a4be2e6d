#include "db/store/migrations.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "db/store/sqlite_database.h"
#include "tests/unit/store/store_fixture.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

const Migration kFirst{"0001_first", "CREATE TABLE a (x INTEGER) STRICT; INSERT INTO a VALUES (1);"};
const Migration kSecond{"0002_second", "ALTER TABLE a ADD COLUMN y INTEGER; UPDATE a SET y = x + 1;"};
const Migration kBroken{"0003_broken", "CREATE TABLE b (x INTEGER) STRICT; INSERT INTO nowhere VALUES (1);"};

class MigrationsTest : public StoreTest {
 protected:
  std::unique_ptr<Database> Open(const std::string& name) {
    auto database = Database::Open(folder_ + "/" + name, Database::Mode::kReadWrite, std::chrono::seconds(5));
    EXPECT_TRUE(database.ok()) << database.status();
    return *std::move(database);
  }
};

TEST_F(MigrationsTest, AnEmptyFileGetsAllStepsAndNoBackup) {
  auto database = Open("m.db");
  ASSERT_TRUE(Migrate(*database, {kFirst, kSecond}).ok());
  EXPECT_EQ(*database->Integer("PRAGMA user_version"), 2);
  EXPECT_EQ(*database->Integer("SELECT y FROM a"), 2);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/m.db.v0.backup"));
  EXPECT_TRUE(Migrate(*database, {kFirst, kSecond}).ok()) << "again: nothing to do";
}

TEST_F(MigrationsTest, AnOlderFileIsCopiedFirst) {
  auto database = Open("m.db");
  ASSERT_TRUE(Migrate(*database, {kFirst}).ok());
  ASSERT_TRUE(database->Execute("INSERT INTO a VALUES (7)").ok());
  ASSERT_TRUE(Migrate(*database, {kFirst, kSecond}).ok());
  EXPECT_EQ(*database->Integer("SELECT max(y) FROM a"), 8);

  auto backup = Open("m.db.v1.backup");
  EXPECT_EQ(*backup->Integer("PRAGMA user_version"), 1);
  EXPECT_EQ(*backup->Integer("SELECT max(x) FROM a"), 7);
}

TEST_F(MigrationsTest, AStepThatFailsChangesNothing) {
  auto database = Open("m.db");
  const absl::Status failed = Migrate(*database, {kFirst, kSecond, kBroken});
  EXPECT_FALSE(failed.ok());
  EXPECT_THAT(std::string(failed.message()), HasSubstr("0003_broken"));
  EXPECT_EQ(*database->Integer("PRAGMA user_version"), 2);
  EXPECT_EQ(*database->Integer("SELECT count(*) FROM sqlite_schema WHERE name = 'b'"), 0);
}

TEST_F(MigrationsTest, ANewerFileIsRefused) {
  store_.reset();
  {
    auto database = Open("fusion.db");
    ASSERT_TRUE(database->Execute("PRAGMA user_version = 999").ok());
  }
  const absl::Status opened = OpenSqliteStore(path_).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(opened)) << opened;
  EXPECT_THAT(std::string(opened.message()), HasSubstr("newer version"));
  EXPECT_THAT(std::string(opened.message()), HasSubstr("999"));
}

TEST_F(MigrationsTest, TheEmbeddedStepsAreNumberedFromOneWithoutGaps) {
  const std::vector<Migration>& migrations = EmbeddedMigrations();
  ASSERT_GE(migrations.size(), 3u);
  for (size_t i = 0; i < migrations.size(); ++i) {
    EXPECT_EQ(std::stoul(migrations[i].name.substr(0, 4)), i + 1) << migrations[i].name;
  }
}

// What 0017 writes anew: the text of constraints, without a row being touched.
TEST_F(MigrationsTest, ConstraintsWithoutListsAllowWhatTheyAllowedBefore) {
  std::vector<Migration> before = EmbeddedMigrations();
  before.resize(16);
  auto database = Open("old.db");
  ASSERT_TRUE(Migrate(*database, before).ok());
  const auto job = [](int number, const std::string& state) {
    return absl::StrCat(
        "INSERT INTO jobs (number, id, request_id, state, target, graph_name, graph_hash, "
        "created_micros, updated_micros, graph_summary, request, error, result, user, "
        "priority, queue_limit_micros, traceparent) VALUES (",
        number, ", 'jobs/", number, "', NULL, '", state,
        "', 'CUDA', 'g', 'h', 1, 1, x'', x'', x'', x'', '', 0, 0, '')");
  };
  const auto task = [](int number, const std::string& state, const std::string& failure) {
    return absl::StrCat(
        "INSERT INTO tasks VALUES (", number, ", 'tasks/", number, "', 'k", number, "', 'BUILD', '", state,
        "', 'CUDA', '', '', 'u', 0, 0, 0, 0, 0, '', '', '', 0, 0, 0, 0, 0, '", failure, "', '', 1, 1, x'')");
  };
  ASSERT_TRUE(database->Execute(job(1, "RUNNING")).ok());
  ASSERT_TRUE(database->Execute(task(1, "RUNNING", "")).ok());
  ASSERT_TRUE(Migrate(*database, EmbeddedMigrations()).ok());
  database = Open("old.db");  // as it is read from the file

  EXPECT_EQ(*database->Integer("SELECT count(*) FROM jobs WHERE state = 'RUNNING'"), 1);
  EXPECT_EQ(*database->Integer("SELECT count(*) FROM tasks WHERE state = 'RUNNING'"), 1);
  EXPECT_EQ(*database->Integer("SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'"),
            0);
  EXPECT_EQ(*database->Integer("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('jobs', "
                               "'tasks') AND (sql LIKE '%state IN (%' OR sql LIKE '%failure IN (%')"),
            0);
  int number = 1;
  for (const char* state : {"QUEUED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED"})
    EXPECT_TRUE(database->Execute(job(++number, state)).ok()) << state;
  for (const char* state : {"QUEUED", "RUNNING", "DONE", "FAILED", "CANCELLED"})
    EXPECT_TRUE(database->Execute(task(++number, state, "")).ok()) << state;
  for (const char* failure : {"", "WORKER_LOST", "WORKER_FAILED", "QUEUE_TIMEOUT"})
    EXPECT_TRUE(database->Execute(task(++number, "FAILED", failure)).ok()) << failure;
  const auto refused = [&](const std::string& change) {
    const absl::Status status = database->Execute(change);
    return !status.ok() && absl::StrContains(status.message(), "CHECK");
  };
  for (const char* state : {"", "DONE", "queued", "QUEUED "}) EXPECT_TRUE(refused(job(99, state))) << state;
  for (const char* state : {"", "SUCCEEDED", "done"}) EXPECT_TRUE(refused(task(99, state, ""))) << state;
  EXPECT_TRUE(refused(task(99, "FAILED", "LOST")));
  EXPECT_TRUE(refused("UPDATE jobs SET state = 'DONE' WHERE number = 1"));
  EXPECT_TRUE(refused("UPDATE tasks SET state = 'SUCCEEDED' WHERE number = 1"));
  EXPECT_TRUE(refused("UPDATE tasks SET failure = 'x' WHERE number = 1"));
  EXPECT_TRUE(refused("UPDATE tasks SET kind = 'x' WHERE number = 1"));
}

// 0020 carries over what was learned, from keys with the library's hash to keys with those of functions.
TEST_F(MigrationsTest, WhatWasLearnedIsKeptWithItsFunctions) {
  std::vector<Migration> before = EmbeddedMigrations();
  before.resize(19);
  auto database = Open("old.db");
  ASSERT_TRUE(Migrate(*database, before).ok());
  ASSERT_TRUE(
      database
          ->Execute("INSERT INTO kernel_times VALUES"
                    " ('H200', 'COLD', 'sha256:1', '13.0', 'f', '8', 'a', 5, x'01'),"
                    " ('H200', 'COLD', 'sha256:2', '13.0', 'f', '8', 'a', 9, x'02'),"
                    " ('H200', 'COLD', 'sha256:3', '13.0', 'f', '8', 'a', 7, x'03'),"
                    " ('H200', 'COLD', 'sha256:1', '13.0', 'f', '8', 'b', 6, x'04');"
                    "INSERT INTO routine_tables VALUES"
                    " ('H200', 'sha256:b33215ecf95c86ab', '13.0', 'mmul_tile<f32,4,4,4> shared', x'05', 1),"
                    " ('H200', 'sha256:b33215ecf95c86ab', '13.0', 'load f32[9] shared', x'06', 1),"
                    " ('H200', 'sha256:0000000000000000', '13.0', 'load f32[9] shared', x'07', 1);")
          .ok());
  ASSERT_TRUE(Migrate(*database, EmbeddedMigrations()).ok());

  EXPECT_EQ(*database->Integer("SELECT count(*) FROM kernel_times"), 2);
  EXPECT_EQ(
      *database->Integer("SELECT count(*) FROM kernel_times WHERE toolkit = '13.0' AND family = 'f' AND "
                         "variant = 'a' AND updated_micros = 9 AND content = x'02'"),
      1)
      << "the newest";
  EXPECT_EQ(*database->Integer("SELECT count(*) FROM kernel_times WHERE variant = 'b' AND content = x'04'"),
            1);
  EXPECT_EQ(*database->Integer("SELECT count(*) FROM routine_tables"), 2);
  EXPECT_EQ(*database->Integer("SELECT count(*) FROM routine_tables WHERE content = x'05' AND source_hash = "
                               "'49e93bedad8c259a'"),
            1);
  EXPECT_EQ(
      *database->Integer("SELECT count(*) FROM routine_tables WHERE content = x'06' AND source_hash = ''"),
      1);
}

// A server of the version before was stopped while a worker had a task.
TEST_F(MigrationsTest, ADatabaseOfBeforeGoesOn) {
  store_.reset();
  path_ = folder_ + "/before.db";
  size_t version = 0;
  {
    std::vector<Migration> before;
    for (const Migration& migration : EmbeddedMigrations()) {
      if (migration.sql.find("CREATE TABLE new_tasks") != std::string::npos) break;
      before.push_back(migration);
    }
    ASSERT_LT(before.size(), EmbeddedMigrations().size());
    version = before.size();
    auto database = Database::Open(path_, Database::Mode::kReadWrite, std::chrono::seconds(1));
    ASSERT_TRUE(database.ok()) << database.status();
    ASSERT_TRUE(Migrate(**database, before).ok());
    const absl::Status filled = (*database)->Execute(
        "INSERT INTO jobs (id, state, target, graph_name, graph_hash, created_micros, updated_micros, "
        "graph_summary, request, "
        "error, result) VALUES ('jobs/1', 'RUNNING', 'HOST', 'g', 'h', 1, 1, x'', x'', x'', x'');"
        "INSERT INTO tasks (id, key, kind, state, target, arch, device_uuid, priority, fence, attempts, "
        "failures, lost_workers, "
        "worker, instance, lease_until_micros, not_before_micros, failure, failure_message, created_micros, "
        "updated_micros, "
        "payload, result) VALUES ('tasks/1', 'k', 'BUILD', 'RUNNING', 'HOST', 'x86-64', '', 0, 4, 1, 0, 0, "
        "'w', '1', 9, 0, '', "
        "'', 1, 2, x'', x'');"
        "INSERT INTO job_tasks VALUES ('jobs/1', 1);");
    ASSERT_TRUE(filled.ok()) << filled;
  }
  Reopen();
  EXPECT_EQ(store_->UnfinishedJobs()->size(), 1u);
  EXPECT_EQ(store_->AdoptRunning(At(5), std::chrono::seconds(30)).value(), 1);
  EXPECT_TRUE(store_->CompleteTask({{"tasks/1", 4}, "result"}, At(6)).value());
  const auto trace = store_->JobTrace("jobs/1");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->traceparent, "");
  ASSERT_EQ(trace->tasks.size(), 1u);
  EXPECT_TRUE(trace->tasks[0].attempts.empty()) << "nobody noted it then";
  EXPECT_TRUE(std::filesystem::exists(path_ + ".v" + std::to_string(version) + ".backup"));
}

// The version before had no scopes.
TEST_F(MigrationsTest, ATokenOfBeforeIsLimitedToNothing) {
  store_.reset();
  std::filesystem::remove(path_);
  std::vector<Migration> before = EmbeddedMigrations();
  const auto added = std::find_if(before.begin(), before.end(), [](const Migration& migration) {
    return migration.name == "0015_token_scopes";
  });
  ASSERT_NE(added, before.end());
  before.erase(added, before.end());
  {
    auto database = Database::Open(path_, Database::Mode::kReadWrite, std::chrono::seconds(5));
    ASSERT_TRUE(database.ok()) << database.status();
    ASSERT_TRUE(Migrate(**database, before).ok());
    ASSERT_TRUE(
        (*database)
            ->Execute("INSERT INTO tokens (id, principal, role, secret_hash, created_micros, "
                      "expires_micros, revoked_micros) VALUES ('tokens/1', 'eva', 'USER', '00ff', 1, 0, 0)")
            .ok());
  }
  Reopen();
  ASSERT_EQ(store_->Tokens()->size(), 1u);
  EXPECT_EQ(store_->Tokens()->front().principal, "eva");
  EXPECT_EQ(store_->Tokens()->front().scopes, "");
}

}  // namespace
}  // namespace fusion
