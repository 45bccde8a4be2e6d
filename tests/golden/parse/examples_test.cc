// Every example as it is printed in each form. The golden files lie beside this one; --update-goldens writes
// them.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "server/parse/parse.h"
#include "tests/folders.h"
#include "tests/test_main.h"

namespace fusion {
namespace {

namespace fs = std::filesystem;

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> Examples() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(fs::path(testing::SourceFolder()) / "examples"))
    if (entry.path().extension() == ".fuse") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<std::shared_ptr<const Graph>> Parse(const std::string& text, const std::string& file_name) {
  auto library = Catalog::BuiltIn();
  if (!library.ok()) return library.status();
  v1::GraphSource source;
  source.set_fuse(text);
  source.set_file_name(file_name);
  return ParseSource(source, *library);
}

class ExampleGolden : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const fs::path path = fs::path(testing::SourceFolder()) / "examples" / (GetParam() + ".fuse");
    auto graph = Parse(ReadFile(path), path.filename().string());
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    graph_ = *graph;
  }

  void Compare(const std::string& printed, const std::string& extension) {
    const fs::path path = fs::path(testing::SourceFolder()) / "tests/golden/parse" / (GetParam() + extension);
    if (testing::g_update_goldens) {
      std::ofstream(path, std::ios::binary) << printed;
    } else {
      ASSERT_TRUE(fs::exists(path)) << path << " is missing; run with --update-goldens";
      EXPECT_EQ(printed, ReadFile(path)) << path;
    }
  }

  std::shared_ptr<const Graph> graph_;
};

TEST_P(ExampleGolden, Fuse) {
  const std::string printed = PrintFuse(*graph_);
  Compare(printed, ".fuse");
  auto again = Parse(printed, GetParam() + ".fuse");
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(PrintFuse(**again), printed);
  EXPECT_EQ(GraphHash(**again), GraphHash(*graph_));
}

TEST_P(ExampleGolden, Graphviz) { Compare(PrintGraphviz(*graph_), ".dot"); }

TEST_P(ExampleGolden, Json) {
  const std::string printed = PrintJson(*graph_);
  Compare(printed, ".json");
  auto again = Parse(printed, GetParam() + ".json");
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(PrintFuse(**again), PrintFuse(*graph_));
  EXPECT_EQ(GraphHash(**again), GraphHash(*graph_));
}

// The sizes that the examples are measured at are in the files, so each can be submitted as it is.
TEST_P(ExampleGolden, HasAllSizes) {
  auto sizes = ResolveSizes(*graph_, {}, GetParam());
  ASSERT_TRUE(sizes.ok()) << sizes.status().message();
  EXPECT_GT(graph_->FloorBytes(*sizes), 1'000'000);
}

INSTANTIATE_TEST_SUITE_P(Examples, ExampleGolden, ::testing::ValuesIn(Examples()),
                         [](const auto& info) { return info.param; });

TEST(Examples, AreThere) {
  const std::vector<std::string> expected = {
      "adam_step", "atax",   "axpydot", "bicgk",       "black_scholes",       "cg_step", "function1",
      "function2", "gemver", "gesummv", "joint_poses", "layer_norm",          "madd",    "rms_norm",
      "sgemv",     "sgemvt", "softmax", "sscal",       "st_venant_kirchhoff", "vadd",    "waxpby"};
  const std::vector<std::string> found = Examples();
  for (const std::string& name : expected)
    EXPECT_TRUE(std::find(found.begin(), found.end(), name) != found.end()) << name;
}

}  // namespace
}  // namespace fusion
