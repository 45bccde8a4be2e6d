#include "client/cli/artifact_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "client/cli/write_file.h"

namespace fusion {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class ArtifactFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) /
              ::testing::UnitTest::GetInstance()->current_test_info()->name() / "export";
    fs::remove_all(folder_.parent_path());
  }
  void TearDown() override { fs::remove_all(folder_.parent_path()); }
  static v1::Artifact Files(const std::vector<std::pair<std::string, std::string>>& files) {
    v1::Artifact artifact;
    for (const auto& [path, content] : files) {
      v1::ArtifactFile* file = artifact.add_files();
      file->set_path(path);
      file->set_content(content);
    }
    return artifact;
  }
  std::string Content(const std::string& name) {
    std::ifstream file(folder_ / name);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  absl::Status Write(const v1::Artifact& artifact, const std::string& report = "{}", bool force = false) {
    return WriteArtifact(artifact, report, folder_.string(), force);
  }
  fs::path folder_;
};

TEST_F(ArtifactFolderTest, AFolderWithoutANameIsNotTheOneWeAreIn) {
  const absl::Status status = WriteArtifact(Files({{"fused.cu", "code"}}), "{}", "", true);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_FALSE(fs::exists("fused.cu"));
}

TEST_F(ArtifactFolderTest, WritesFilesAndReport) {
  ASSERT_TRUE(Write(Files({{"fused.cu", "code"}, {"example/main.cc", "main"}})).ok());
  EXPECT_EQ(Content("fused.cu"), "code");
  EXPECT_EQ(Content("example/main.cc"), "main");
  EXPECT_EQ(Content("report.json"), "{}");
}

TEST_F(ArtifactFolderTest, KeepsTheReportOfTheArtifact) {
  ASSERT_TRUE(Write(Files({{"report.json", "theirs"}})).ok());
  EXPECT_EQ(Content("report.json"), "theirs");
}

TEST_F(ArtifactFolderTest, ReplacesAnEarlierExport) {
  ASSERT_TRUE(Write(Files({{"fused.cu", "cuda"}})).ok());
  ASSERT_TRUE(Write(Files({{"fused.cc", "host"}})).ok());
  EXPECT_FALSE(fs::exists(folder_ / "fused.cu"));
  EXPECT_EQ(Content("fused.cc"), "host");
}

TEST_F(ArtifactFolderTest, RefusesAFolderOfOthersUnlessForced) {
  fs::create_directories(folder_);
  std::ofstream(folder_ / "thesis.tex") << "years of work";
  absl::Status status = Write(Files({{"fused.cu", "code"}}));
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("is not empty"));
  EXPECT_FALSE(fs::exists(folder_ / "fused.cu"));
  EXPECT_TRUE(Write(Files({{"fused.cu", "code"}}), "{}", /*force=*/true).ok());
  EXPECT_EQ(Content("thesis.tex"), "years of work");
}

TEST_F(ArtifactFolderTest, RefusesAFile) {
  fs::create_directories(folder_.parent_path());
  std::ofstream(folder_) << "a file";
  EXPECT_TRUE(absl::IsInvalidArgument(Write(Files({{"fused.cu", "code"}}))));
}

// Before a job runs for it.
TEST_F(ArtifactFolderTest, AFolderThatCannotBeMadeIsFoundOutByTheCheck) {
  fs::create_directories(folder_.parent_path());
  std::ofstream(folder_) << "a file";
  const absl::Status status = CheckArtifactFolder((folder_ / "below").string(), false);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("below: cannot be made"));
  const fs::path other = folder_.parent_path() / "other";
  EXPECT_TRUE(CheckArtifactFolder(other.string(), false).ok());
  EXPECT_FALSE(fs::exists(other));
}

TEST_F(ArtifactFolderTest, WritesNothingOutside) {
  for (const char* path : {"../evil", "/tmp/evil", "a/../../evil", "", "a//", ".fusion-files"}) {
    absl::Status status = Write(Files({{"fused.cu", "code"}, {path, "x"}}));
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << path;
    EXPECT_FALSE(fs::exists(folder_ / "fused.cu")) << path;
  }
  EXPECT_FALSE(fs::exists(folder_.parent_path() / "evil"));
}

TEST_F(ArtifactFolderTest, KeepsFilesThatWereChangedUnlessForced) {
  ASSERT_TRUE(Write(Files({{"fused.cu", "one"}, {"other.cu", "other"}})).ok());
  std::ofstream(folder_ / "fused.cu") << "edited";
  const absl::Status refused = Write(Files({{"fused.cu", "two"}}));
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("fused.cu was changed since"));
  EXPECT_EQ(Content("fused.cu"), "edited");
  EXPECT_EQ(Content("other.cu"), "other");
  EXPECT_TRUE(Write(Files({{"fused.cu", "two"}}), "{}", true).ok());
  EXPECT_EQ(Content("fused.cu"), "two");
  EXPECT_FALSE(fs::exists(folder_ / "other.cu"));
  fs::remove(folder_ / "fused.cu");
  EXPECT_TRUE(Write(Files({{"fused.cu", "three"}})).ok()) << "what was removed was not changed";
}

// Exports of before had no digests.
TEST_F(ArtifactFolderTest, ReplacesAnExportOfAnEarlierVersion) {
  fs::create_directories(folder_);
  std::ofstream(folder_ / "fused.cu") << "old";
  std::ofstream(folder_ / kManifestName) << "fused.cu\n";
  ASSERT_TRUE(Write(Files({{"fused.cc", "new"}})).ok());
  EXPECT_FALSE(fs::exists(folder_ / "fused.cu"));
  EXPECT_EQ(Content("fused.cc"), "new");
}

TEST_F(ArtifactFolderTest, AFileWithoutAFolderIsWrittenHere) {
  const fs::path before = fs::current_path();
  fs::create_directories(folder_);
  fs::current_path(folder_);
  const absl::Status written = WriteFile("trace.json", "{}");
  fs::current_path(before);
  EXPECT_TRUE(written.ok()) << written;
  EXPECT_EQ(Content("trace.json"), "{}");
}

}  // namespace
}  // namespace fusion
