#include "server/upkeep/checkpoint_keeper.h"

#include <gtest/gtest.h>

#include <boost/asio/thread_pool.hpp>
#include <filesystem>

#include "base/temporary_directory.h"
#include "tests/eventually.h"

namespace fusion {
namespace {

TEST(CheckpointKeeperTest, MovesTheLogIntoTheFileUntilItIsStopped) {
  auto directory = TemporaryDirectory::Create();
  ASSERT_TRUE(directory.ok());
  const std::string path = (*directory)->path() + "/fusion.db";
  absl::StatusOr<std::unique_ptr<Store>> store = OpenSqliteStore(path, {.checkpoint_pages = 50});
  ASSERT_TRUE(store.ok()) << store.status();
  boost::asio::thread_pool pool(1);
  CheckpointKeeper keeper(**store, pool.get_executor(), std::chrono::milliseconds(5));
  keeper.Start();
  const auto change = [&](char content) {
    EXPECT_TRUE(
        (*store)->PutBlob(std::string(1'000'000, content), "", Timestamp(std::chrono::seconds(1))).ok());
  };
  change('a');
  EXPECT_TRUE(Eventually([&] { return std::filesystem::file_size(path) >= 1'000'000; }));
  keeper.Stop();
  const auto size = std::filesystem::file_size(path);
  change('b');
  pool.join();  // nothing waits for a next period
  EXPECT_EQ(std::filesystem::file_size(path), size);
}

}  // namespace
}  // namespace fusion
