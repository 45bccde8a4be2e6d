#include "client/cli/source_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace fusion {
namespace {

using ::testing::HasSubstr;

class SourceFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string Write(const std::string& name, const std::string& content) {
    const std::filesystem::path path = folder_ / name;
    std::ofstream(path, std::ios::binary) << content;
    return path.string();
  }
  std::string ErrorOf(const std::string& path, const std::vector<std::string>& sizes = {}) {
    absl::StatusOr<SourceFile> file = ReadSource(path, sizes);
    EXPECT_TRUE(absl::IsInvalidArgument(file.status())) << file.status();
    return std::string(file.status().message());
  }
  std::filesystem::path folder_;
};

TEST_F(SourceFileTest, ReadsFuseTextAndSizes) {
  const std::string path = Write("a.fuse", "return x;\n");
  absl::StatusOr<SourceFile> file = ReadSource(path, {"m=3", "n=16384"});
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->source.fuse(), "return x;\n");
  EXPECT_EQ(file->source.file_name(), path);
  EXPECT_EQ(file->source.size_values().at("n"), 16384);
  EXPECT_EQ(file->text, "return x;\n");
}

TEST_F(SourceFileTest, ReadsProtobufAndItsJson) {
  v1::Graph graph;
  graph.set_name("g");
  graph.add_inputs("x");
  absl::StatusOr<SourceFile> binary = ReadSource(Write("a.pb", graph.SerializeAsString()), {});
  ASSERT_TRUE(binary.ok()) << binary.status();
  EXPECT_EQ(binary->source.graph().name(), "g");
  absl::StatusOr<SourceFile> json = ReadSource(Write("a.json", R"({"name": "g", "inputs": ["x"]})"), {});
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_EQ(json->source.graph().inputs(0), "x");
}

TEST_F(SourceFileTest, SaysWhatCannotBeRead) {
  EXPECT_THAT(ErrorOf((folder_ / "none.fuse").string()), HasSubstr("No such file"));
  EXPECT_THAT(ErrorOf(folder_.string()), HasSubstr("is a folder"));
  EXPECT_THAT(ErrorOf(Write("a.pb", "\xff\xff\xff")), HasSubstr("no serialised fusion.v1.Graph"));
  EXPECT_THAT(ErrorOf(Write("a.json", "{\"name\": }")), HasSubstr("a.json:1:10: error: JSON"));
  EXPECT_THAT(ErrorOf(Write("b.json", "{\"colour\": 1}")), HasSubstr("colour"));
}

TEST_F(SourceFileTest, PlacesBytesThatAreNotUtf8) {
  EXPECT_THAT(ErrorOf(Write("a.fuse", "size n;\n// \xC3\xA4 \xff\n")),
              HasSubstr("a.fuse:2:6: error: byte 0xff is not UTF-8"));
}

TEST_F(SourceFileTest, RefusesWhatIsTooLarge) {
  const std::string path = Write("big.fuse", "");
  std::filesystem::resize_file(path, kMaximumSourceBytes + 1);
  EXPECT_THAT(ErrorOf(path), HasSubstr("larger than the limit of 64 MiB"));
}

TEST_F(SourceFileTest, ChecksSizes) {
  const std::string path = Write("a.fuse", "");
  EXPECT_THAT(ErrorOf(path, {"n"}), HasSubstr("must be NAME=VALUE"));
  EXPECT_THAT(ErrorOf(path, {"=3"}), HasSubstr("must be NAME=VALUE"));
  EXPECT_THAT(ErrorOf(path, {"n=many"}), HasSubstr("\"many\" is no whole number"));
  EXPECT_THAT(ErrorOf(path, {"n=99999999999999999999"}), HasSubstr("fits 64 bits"));
  EXPECT_THAT(ErrorOf(path, {"n=1", "n=2"}), HasSubstr("given twice"));
}

TEST(WithSourceLinesTest, PutsACaretUnderTheColumn) {
  EXPECT_EQ(WithSourceLines("f.fuse:2:5: error: unknown\nf.fuse: error: and 1 more error", "f.fuse",
                            "one\nx = y(z);\n"),
            "f.fuse:2:5: error: unknown\n"
            "  x = y(z);\n"
            "      ^\n"
            "f.fuse: error: and 1 more error\n");
}

TEST(WithSourceLinesTest, KeepsTabsAndCountsCharacters) {
  EXPECT_EQ(WithSourceLines("f:1:4: error: e", "f", "\t\xC3\xA4 q\r\n"),
            "f:1:4: error: e\n"
            "  \t\xC3\xA4 q\n"
            "  \t  ^\n");
}

TEST(WithSourceLinesTest, CutsLongLinesAroundTheColumn) {
  const std::string text = std::string(500, 'a') + "!" + std::string(500, 'b');
  EXPECT_EQ(WithSourceLines("f:1:501: error: e", "f", text), "f:1:501: error: e\n  " + std::string(60, 'a') +
                                                                 "!" + std::string(39, 'b') + "\n  " +
                                                                 std::string(60, ' ') + "^\n");
}

TEST(WithSourceLinesTest, LeavesOtherLinesAlone) {
  EXPECT_EQ(WithSourceLines("f:calls[3]: error: e", "f", "text"), "f:calls[3]: error: e\n");
  EXPECT_EQ(WithSourceLines("f:9:1: error: beyond the end", "f", "text"), "f:9:1: error: beyond the end\n");
}

}  // namespace
}  // namespace fusion
