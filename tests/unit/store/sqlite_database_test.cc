#include "db/store/sqlite_database.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <filesystem>
#include <string>

namespace fusion {
namespace {

using ::testing::HasSubstr;

// Workers and clients try again after Unavailable, and give up after PermissionDenied.
TEST(DatabaseTest, NoFreeDescriptorPasses) {
  std::string folder = ::testing::TempDir() + "fusion_database_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const auto open = [&] {
    return Database::Open(folder + "/few.db", Database::Mode::kReadWrite, std::chrono::milliseconds(1000));
  };
  auto first = open();
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE((*first)->Execute("PRAGMA journal_mode = WAL").ok());
  ASSERT_TRUE((*first)->Execute("CREATE TABLE numbers (number INTEGER PRIMARY KEY) STRICT").ok());
  auto second = open();
  ASSERT_TRUE(second.ok()) << second.status();

  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 3;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const absl::StatusOr<int64_t> without = (*second)->Integer("SELECT count(*) FROM numbers");
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(without.status().code(), absl::StatusCode::kUnavailable) << without.status();
  EXPECT_THAT(std::string(without.status().message()), HasSubstr("no file descriptor is free"));
  const absl::StatusOr<int64_t> with = (*second)->Integer("SELECT count(*) FROM numbers");
  ASSERT_TRUE(with.ok()) << with.status();
  EXPECT_EQ(*with, 0);
  first->reset();
  second->reset();
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace fusion
