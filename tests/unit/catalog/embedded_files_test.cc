#include "library/catalog/embedded_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/folders.h"

namespace fusion {
namespace {

// Byte for byte what stands in the source tree, including quotes and backslashes.
TEST(EmbeddedFilesTest, EqualTheFilesOfTheLibrary) {
  std::filesystem::path library = std::filesystem::path(testing::SourceFolder()) / "library";
  size_t files = 0;
  for (const char* folder : {"functions", "device", "verification"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(library / folder)) {
      std::string extension = entry.path().extension().string();
      if (extension != ".h" && extension != ".textproto") continue;
      if (entry.path().filename() == "input_rules.h") continue;  // no part of exported folders
      std::ostringstream text;
      text << std::ifstream(entry.path(), std::ios::binary).rdbuf();
      auto it = EmbeddedFiles().find(entry.path().lexically_relative(library).string());
      ASSERT_TRUE(it != EmbeddedFiles().end()) << entry.path();
      EXPECT_EQ(it->second, text.str()) << entry.path();
      ++files;
    }
  }
  EXPECT_EQ(files, EmbeddedFiles().size());
  EXPECT_EQ(EmbeddedFiles().count("device/fusion_device.h"), 1u);
  EXPECT_EQ(EmbeddedFiles().count("device/fusion_math.h"), 1u);
}

}  // namespace
}  // namespace fusion
