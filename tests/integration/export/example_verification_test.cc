// Whether the example of an exported folder sees faults that a tolerance on random data hides, and lets pass
// what rounding does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/temporary_directory.h"
#include "client/cli/artifact_folder.h"
#include "server/optimize/cover_export.h"
#include "server/optimize/plans.h"
#include "tests/example_source.h"
#include "tests/integration/exported_folder_build.h"

namespace fusion::testing {
namespace {

using ::testing::HasSubstr;

class ExampleVerificationTest : public ::testing::Test {
 protected:
  void Export(const std::string& source) {
    auto directory = TemporaryDirectory::Create();
    ASSERT_TRUE(directory.ok()) << directory.status();
    directory_ = *std::move(directory);
    folder_ = absl::StrCat(directory_->path(), "/folder");
    auto catalog = Catalog::BuiltIn();
    ASSERT_TRUE(catalog.ok());
    auto submission = CheckSource(TextSource(source), *catalog);
    ASSERT_TRUE(submission.ok()) << submission.status();
    const CostModel model(DescribedDevice(v1::HOST));
    auto plans = PlanCovers(*submission, model, 1, false);
    ASSERT_TRUE(plans.ok()) << plans.status();
    std::vector<const FusionImplementation*> fusions;
    for (int member : plans->covers.covers.front().columns)
      fusions.push_back(&plans->space.implementations[member]);
    auto exporter = CoverExporter::Create(*submission);
    ASSERT_TRUE(exporter.ok()) << exporter.status();
    auto artifact = exporter->Export(DescribedDevice(v1::HOST), fusions, "best predicted");
    ASSERT_TRUE(artifact.ok()) << artifact.status();
    const absl::Status written = WriteArtifact(*artifact, "", folder_, false);
    ASSERT_TRUE(written.ok()) << written;
  }

  // fused_launch becomes `body`, in which Right(...) is what was exported.
  CommandResult RunWith(const std::string& body) {
    std::string path = folder_ + "/fused.cc", text;
    {
      std::ifstream stream(path);
      text.assign(std::istreambuf_iterator<char>(stream), {});
    }
    const std::string head = "extern \"C\" int fused_launch(";
    const size_t begin = text.find(head);
    EXPECT_NE(begin, std::string::npos);
    const std::string parameters =
        text.substr(begin + head.size(), text.find(") {", begin) - begin - head.size());
    std::ofstream(path) << absl::StrReplaceAll(text, {{head, "static int Right("}}) << "\n#include <vector>\n"
                        << head << parameters << ") {\n"
                        << body << "}\n";
    const CommandResult compiled = CompileHostFolder(folder_);
    EXPECT_EQ(compiled.exit_code, 0) << compiled.output;
    return RunExample(folder_, "--once");
  }

  std::unique_ptr<TemporaryDirectory> directory_;
  std::string folder_;
};

TEST_F(ExampleVerificationTest, ALostTailOfALongSumIsSeen) {
  ASSERT_NO_FATAL_FAILURE(
      Export("size n = 1000003; vector[n] x, y; scalar s; input x, y; s = dot(x, y); return s;\n"));
  const CommandResult ran =
      RunWith("return Right(v_x, v_y, v_s, n_n - 67, workspace_memory, workspace_bytes);\n");
  EXPECT_EQ(ran.exit_code, 1) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("WRONG on "));
}

TEST_F(ExampleVerificationTest, AnIndexThatIsOffByAFewIsSeen) {
  ASSERT_NO_FATAL_FAILURE(
      Export("size n = 100003; vector[n] x; scalar s; input x; s = argmax(x); return s;\n"));
  const CommandResult ran = RunWith(
      "const int code = Right(v_x, v_s, n_n, workspace_memory, workspace_bytes);\n*v_s += 9;\nreturn "
      "code;\n");
  EXPECT_EQ(ran.exit_code, 1) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("WRONG on "));
}

TEST_F(ExampleVerificationTest, RowsThatAMaximumSkipsAreSeen) {
  ASSERT_NO_FATAL_FAILURE(
      Export("size m = 4099; size n = 33; matrix[m,n] A; vector[n] c; input A; c = colmax(A); return c;\n"));
  const CommandResult ran = RunWith(
      "std::vector<float> kept(v_A, v_A + n_m * n_n);\n"
      "for (int64_t i = 7; i < n_m; i += 8)\n  for (int64_t j = 0; j < n_n; ++j) kept[i * n_n + j] = "
      "-1e30f;\n"
      "return Right(kept.data(), v_c, n_m, n_n, workspace_memory, workspace_bytes);\n");
  EXPECT_EQ(ran.exit_code, 1) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("WRONG on "));
}

TEST_F(ExampleVerificationTest, WhatRoundingDoesIsNoFault) {
  // Sums of entries of both signs cancel; a difference of two that are equal but for rounding has no digits.
  ASSERT_NO_FATAL_FAILURE(
      Export("size n = 30011; vector[n] x, y, z; scalar s, t, u, d; input x, y;\n"
             "z = vsub(x, y); s = sum(x); t = sum(y); u = sum(z); d = sub(s, t); return d, u;\n"));
  const CommandResult ran =
      RunWith("return Right(v_x, v_y, v_d, v_u, n_n, workspace_memory, workspace_bytes);\n");
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
}

}  // namespace
}  // namespace fusion::testing
