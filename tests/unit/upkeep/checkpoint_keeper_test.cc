#include "server/upkeep/checkpoint_keeper.h"

#include <gtest/gtest.h>

#include <boost/asio/thread_pool.hpp>
#include <filesystem>
#include <thread>

#include "base/temporary_directory.h"

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
  // However long that takes on a busy machine.
  for (int i = 0; i < 2000 && std::filesystem::file_size(path) < 1'000'000; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_GE(std::filesystem::file_size(path), 1'000'000u);
  keeper.Stop();
  const auto size = std::filesystem::file_size(path);
  change('b');
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(std::filesystem::file_size(path), size);
  pool.join();
}

}  // namespace
}  // namespace fusion
