#include "base/temporary_directory.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace fusion {
namespace {

TEST(TemporaryDirectoryTest, GoesWithItsContents) {
  std::string path;
  {
    auto directory = TemporaryDirectory::Create();
    ASSERT_TRUE(directory.ok());
    path = (*directory)->path();
    std::filesystem::create_directories(path + "/a/b");
    EXPECT_TRUE(std::filesystem::is_directory(path));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace fusion
