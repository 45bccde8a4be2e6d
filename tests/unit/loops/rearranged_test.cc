#include "server/loops/rearranged.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/loops/metafork.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

// The loops in their new order, and the counters of those that are parallel; "" where all stays as it is.
std::string RearrangedText(absl::string_view text) {
  const auto checked = CheckLoops(text, "x.c");
  EXPECT_TRUE(checked.ok()) << checked.status();
  if (!checked.ok()) return "error";
  const std::optional<CheckedProgram> rearranged = Rearranged(*checked);
  if (!rearranged) return "";
  std::string result;
  for (const CRegion& region : rearranged->program.regions)
    result += KernelText(rearranged->program, region, *region.statement, {}, "");
  for (const CheckedLoop& loop : rearranged->loops)
    if (loop.verdict.verdict == Verdict::kIndependent)
      absl::StrAppend(&result, "parallel: ", loop.counter, "\n");
  return result;
}

// Gauss and Seidel's sweeps: the time has all three counters, so that few times have many iterations.
TEST(RearrangedTest, AStencilInPlaceGoesAlongDiagonals) {
  EXPECT_EQ(
      RearrangedText("int n, T;\ndouble a[n][n];\n#pragma fusion parametric\n"
                     "for (int t = 0; t < T; t++)\n"
                     "  for (int i = 1; i < n - 1; i++)\n"
                     "    for (int j = 1; j < n - 1; j++)\n"
                     "      a[i][j] = a[i-1][j+1] + a[i][j-1] + a[i][j+1] + a[i+1][j+1];\n"),
      "meta_schedule\n{\n"
      "    #pragma fusion parametric\n"
      "    for (int w = 3; w <= 3 * n + 4 * T - 10; w += 1)\n    {\n"
      "        for (int t = 0; t < T; t += 1)\n        {\n"
      "            for (int i = 1; i < n - 1; i += 1)\n            {\n"
      "                int j_ = w - 4 * t - 2 * i;\n"
      "                if (j_ >= 1 && j_ < n - 1)\n                {\n"
      "                    a[i][j_] = a[i - 1][j_ + 1] + a[i][j_ - 1] + a[i][j_ + 1] + a[i + 1][j_ + 1];\n"
      "                }\n            }\n        }\n    }\n}\n"
      "parallel: t\n");
}

// Nussinov's algorithm: one loop counts down, and iterations read rows and columns.
TEST(RearrangedTest, RowsAndColumnsOfATriangle) {
  EXPECT_EQ(
      RearrangedText("int n;\nint a[n][n];\n#pragma fusion parametric\n"
                     "for (int i = n - 1; i >= 0; i--)\n"
                     "  for (int j = i + 1; j < n; j++) {\n"
                     "    if (i + 1 < n) a[i][j] = max(a[i][j], a[i+1][j]);\n"
                     "    for (int k = i + 1; k < j; k++) a[i][j] = max(a[i][j], a[i][k] + a[k+1][j]);\n"
                     "  }\n"),
      "meta_schedule\n{\n"
      "    #pragma fusion parametric\n"
      "    for (int w = 1; w <= n - 1; w += 1)\n    {\n"
      "        for (int i = n - 1; i >= 0; i -= 1)\n        {\n"
      "            int j_ = w + i;\n"
      "            if (j_ >= i + 1 && j_ < n)\n            {\n"
      "                if (i + 1 < n)\n                {\n"
      "                    a[i][j_] = max(a[i][j_], a[i + 1][j_]);\n"
      "                }\n"
      "                for (int k = i + 1; k < j_; k += 1)\n                {\n"
      "                    a[i][j_] = max(a[i][j_], a[i][k] + a[k + 1][j_]);\n"
      "                }\n            }\n        }\n    }\n}\n"
      "parallel: i\n");
}

// Entries of the row before are far to the right: no small weights do.
TEST(RearrangedTest, WithoutAProofAllStays) {
  const auto nest = [](const std::string& entry) {
    return absl::StrCat("int n;\ndouble a[n + 9][n + 9];\n#pragma fusion parametric\n",
                        "for (int i = 1; i < n; i++)\n  for (int j = 1; j < n; j++)\n",
                        "    a[i][j] = a[i][j-1] + ", entry, ";\n");
  };
  EXPECT_THAT(RearrangedText(nest("a[i-1][j+3]")), HasSubstr("int j_ = w - 4 * i;"));
  EXPECT_EQ(RearrangedText(nest("a[i-1][j+4]")), "");
  EXPECT_EQ(RearrangedText(nest("a[j][i]")), "");
  EXPECT_EQ(RearrangedText(nest("a[i-1][n-j]")), "");
}

TEST(RearrangedTest, WhereSomethingIsParallelAllStays) {
  EXPECT_EQ(RearrangedText("int n;\ndouble a[n][n];\n#pragma fusion parametric\n"
                           "for (int i = 1; i < n; i++)\n  for (int j = 1; j < n; j++)\n"
                           "    a[i][j] = a[i-1][j-1];\n"),
            "");
}

TEST(RearrangedTest, ALoopIsSplitWhereItsCounterIsAnother) {
  EXPECT_EQ(
      RearrangedText("int n;\nint a[n], b[n];\n#pragma fusion parametric\n"
                     "for (int k = 1; k < n; k++)\n"
                     "  for (int i = n - 1; i >= 1; i--) a[i] = a[k - 1] + b[i];\n"),
      "meta_schedule\n{\n"
      "    #pragma fusion parametric\n"
      "    for (int k = 1; k < n; k += 1)\n    {\n"
      "        for (int i = n - 1; i > (0 > k - 1 ? 0 : k - 1); i -= 1)\n        {\n"
      "            a[i] = a[k - 1] + b[i];\n        }\n"
      "        for (int i = n - 1 < k - 1 ? n - 1 : k - 1; i > (0 > k - 1 - 1 ? 0 : k - 1 - 1); i -= 1)\n"
      "        {\n"
      "            a[i] = a[k - 1] + b[i];\n        }\n"
      "        for (int i = n - 1 < k - 1 - 1 ? n - 1 : k - 1 - 1; i > 0; i -= 1)\n        {\n"
      "            a[i] = a[k - 1] + b[i];\n        }\n    }\n}\n"
      "parallel: i\nparallel: i\n");
}

// Floyd and Warshall's algorithm: row k is in the way of all others, and in each row column k is.
TEST(RearrangedTest, LoopsInPartsAreSplitToo) {
  const std::string text = RearrangedText(
      "int n;\nint a[n][n];\n#pragma fusion parametric\n"
      "for (int k = 0; k < n; k++)\n"
      "  for (int i = 0; i < n; i++)\n"
      "    for (int j = 0; j < n; j++)\n"
      "      a[i][j] = min(a[i][j], a[i][k] + a[k][j]);\n");
  const auto count = [&](const std::string& part) {
    return std::vector<std::string>(absl::StrSplit(text, part)).size() - 1;
  };
  EXPECT_EQ(count("for (int i = 0; i < (n < k ? n : k); i += 1)"), 1u);
  EXPECT_EQ(count("for (int i = 0 > k ? 0 : k; i < (n < k + 1 ? n : k + 1); i += 1)"), 1u);
  EXPECT_EQ(count("for (int i = 0 > k + 1 ? 0 : k + 1; i < n; i += 1)"), 1u);
  EXPECT_EQ(count("for (int j = 0; j < (n < k ? n : k); j += 1)"), 3u);
  EXPECT_EQ(count("parallel: i\n"), 2u);
  EXPECT_EQ(count("parallel: j\n"), 6u);
}

// In the part behind k + 1 each iteration reads what the one before it wrote.
TEST(RearrangedTest, ALoopIsNotSplitWhereItsPartsAreSerial) {
  EXPECT_EQ(RearrangedText("int n;\nint a[n + 1], b[n];\n#pragma fusion parametric\n"
                           "for (int k = 0; k < n; k++)\n"
                           "  for (int i = 1; i < n; i++)\n"
                           "    a[i] = max(a[k] + b[i], a[i - 1]);\n"),
            "");
}

TEST(RearrangedTest, AScalarGoesFromIterationToIteration) {
  const std::string stencil = "a[i][j] = a[i-1][j+1] + a[i][j-1] + s;";
  const auto nest = [](const std::string& body) {
    return absl::StrCat("int n;\ndouble s, a[n][n];\n#pragma fusion parametric\n",
                        "for (int i = 1; i < n; i++)\n  for (int j = 1; j < n - 1; j++) {\n    ", body,
                        "\n  }\n");
  };
  EXPECT_EQ(RearrangedText(nest(stencil + " s = a[i][j] * 2;")), "");
  EXPECT_THAT(RearrangedText(nest("s = a[i][j] * 2; " + stencil)), HasSubstr("parallel: i\n"));
}

}  // namespace
}  // namespace fusion
