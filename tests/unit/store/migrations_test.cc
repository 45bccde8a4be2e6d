#include "db/store/migrations.h"

#include <gmock/gmock.h>

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

}  // namespace
}  // namespace fusion
