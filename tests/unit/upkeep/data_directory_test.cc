#include "server/upkeep/data_directory.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace fusion {
namespace {

TEST(DataDirectoryTest, EnvironmentDecides) {
  setenv("FUSION_DATA_DIR", "/a", 1);
  setenv("XDG_DATA_HOME", "/b", 1);
  setenv("HOME", "/c", 1);
  EXPECT_EQ(DefaultDataDirectory(), "/a");
  unsetenv("FUSION_DATA_DIR");
  EXPECT_EQ(DefaultDataDirectory(), "/b/fusion");
  unsetenv("XDG_DATA_HOME");
  EXPECT_EQ(DefaultDataDirectory(), "/c/.local/share/fusion");
}

TEST(DataDirectoryTest, PrepareCreatesParentsAndSaysWhyNot) {
  const std::filesystem::path base = std::filesystem::path(::testing::TempDir()) / "prepare";
  std::filesystem::remove_all(base);
  EXPECT_TRUE(PrepareDataDirectory((base / "x/y").string()).ok());
  EXPECT_TRUE(std::filesystem::is_directory(base / "x/y"));
  EXPECT_TRUE(PrepareDataDirectory((base / "x/y").string()).ok());
  std::ofstream(base / "file") << "x";
  absl::Status status = PrepareDataDirectory((base / "file/y").string());
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_NE(std::string(status.message()).find("FUSION_DATA_DIR"), std::string::npos);
  std::filesystem::remove_all(base);
}

TEST(DataDirectoryTest, ADumpDirectoryThatCannotBeWrittenIsSaid) {
  EXPECT_TRUE(PrepareDumpDirectory("").ok());
  const std::filesystem::path base = std::filesystem::path(::testing::TempDir()) / "dump";
  std::filesystem::remove_all(base);
  EXPECT_TRUE(PrepareDumpDirectory((base / "x/y").string()).ok());
  EXPECT_TRUE(std::filesystem::is_directory(base / "x/y"));
  std::ofstream(base / "file") << "x";
  for (const char* bad : {"file", "file/y"}) {
    const absl::Status status = PrepareDumpDirectory((base / bad).string());
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_NE(status.message().find((base / bad).string()), absl::string_view::npos) << status;
  }
  std::filesystem::remove_all(base);
}

}  // namespace
}  // namespace fusion
