#include "client/cli/plot_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace fusion {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class PlotFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(::testing::TempDir()) / ::testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(root_);
    fs::create_directories(root_);
    folder_ = root_ / "a" / "plots";
    report_.set_measured_plot("<svg>measured</svg>");
    report_.set_convergence_plot("<svg>convergence</svg>");
  }
  void TearDown() override { fs::remove_all(root_); }
  void Put(const std::string& name, const std::string& content) {
    fs::create_directories(folder_);
    std::ofstream(folder_ / name) << content;
  }
  std::string Content(const std::string& name) {
    std::ifstream file(folder_ / name);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  absl::StatusOr<PlotPaths> Write() { return WritePlots(report_, folder_.string()); }

  fs::path root_, folder_;
  v1::ReportModelResponse report_;
};

TEST_F(PlotFilesTest, WritesBothIntoANewFolderAndSaysWhere) {
  EXPECT_TRUE(CheckPlotFolder(folder_.string()).ok());
  EXPECT_FALSE(fs::exists(folder_));
  absl::StatusOr<PlotPaths> paths = Write();
  ASSERT_TRUE(paths.ok()) << paths.status();
  EXPECT_EQ(paths->measured, (folder_ / "predicted_vs_measured.svg").string());
  EXPECT_EQ(paths->convergence, (folder_ / "convergence.svg").string());
  EXPECT_EQ(Content("predicted_vs_measured.svg"), "<svg>measured</svg>");
  EXPECT_EQ(Content("convergence.svg"), "<svg>convergence</svg>");
}

TEST_F(PlotFilesTest, ReplacesPlotsAndLeavesOtherFilesAlone) {
  Put("predicted_vs_measured.svg", "<svg>" + std::string(1000, 'x'));
  Put("convergence.svg", "<?xml version=\"1.0\"?><svg/>");
  Put("notes.txt", "mine");
  EXPECT_TRUE(Write().ok());
  EXPECT_EQ(Content("predicted_vs_measured.svg"), "<svg>measured</svg>");
  EXPECT_EQ(Content("convergence.svg"), "<svg>convergence</svg>");
  EXPECT_EQ(Content("notes.txt"), "mine");
}

TEST_F(PlotFilesTest, ReplacesNothingElse) {
  for (const char* content : {"", "<sv", "mine", "\n<svg>"}) {
    Put("convergence.svg", content);
    EXPECT_TRUE(absl::IsInvalidArgument(CheckPlotFolder(folder_.string()))) << content;
    const absl::Status status = Write().status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << content;
    EXPECT_THAT(std::string(status.message()), HasSubstr((folder_ / "convergence.svg").string()));
    EXPECT_EQ(Content("convergence.svg"), content);
    EXPECT_FALSE(fs::exists(folder_ / "predicted_vs_measured.svg"));
  }
  fs::remove(folder_ / "convergence.svg");
  fs::create_directory(folder_ / "predicted_vs_measured.svg");
  EXPECT_TRUE(absl::IsInvalidArgument(CheckPlotFolder(folder_.string())));
}

TEST_F(PlotFilesTest, AFileIsNoFolder) {
  std::ofstream(root_ / "a") << "x";
  const absl::Status status = CheckPlotFolder((root_ / "a").string());
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("is no folder"));
  EXPECT_TRUE(absl::IsUnavailable(Write().status()));  // a parent is a file
}

TEST_F(PlotFilesTest, WithoutPlotsNothingIsWritten) {
  report_.clear_convergence_plot();
  EXPECT_TRUE(absl::IsUnavailable(Write().status()));
  EXPECT_FALSE(fs::exists(folder_));
}

}  // namespace
}  // namespace fusion
