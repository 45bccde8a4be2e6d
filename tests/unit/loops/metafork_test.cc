#include "server/loops/metafork.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "server/loops/check.h"
#include "tests/folders.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

std::string ListingOf(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}
std::filesystem::path Listings() { return testing::SourceFolder() + "/examples/loops"; }

TEST(MetaForkTest, LoopsOfOpenMpAreSharedOut) {
  const auto printed = PrintMetaFork(ListingOf(Listings() / "lu.c"), "lu.c");
  ASSERT_TRUE(printed.ok()) << printed.status();
  EXPECT_EQ(*printed,
            R"(const long N = 2048;
float L[N * N];
float U[N * N];
int G;
int B;
for (int k = 0; k < N; k += 1)
{
    meta_schedule
    {
        int tmp0 = N;
        int tmp2 = (tmp0 - 1 + G) / G;
        int tmp3 = (tmp0 - 1) / tmp2 + 1;
        meta_for (int tmp4 = 0; tmp4 < tmp3; tmp4 += 1)
        {
            meta_for (int tmp6 = 0; tmp6 < B; tmp6 += 1)
            {
                for (int tmp5 = tmp6; tmp5 < tmp2; tmp5 += B)
                {
                    int tmp1 = tmp4 * tmp2 + tmp5;
                    if (tmp1 < tmp0)
                    {
                        int i = tmp1;
                        if (i < N - k - 1)
                        {
                            int p = i + k + 1;
                            int in1 = k * N + p;
                            int in2 = k * N + k;
                            L[in1] = U[in1] / U[in2];
                            for (int j = k; j < N; j += 1)
                            {
                                int in3 = j * N + p;
                                int in4 = k * N + p;
                                int in5 = j * N + k;
                                U[in3] -= L[in4] * U[in5];
                            }
                        }
                    }
                }
            }
        }
    }
}
)");
}

// Chen et al. 2017 print these values for G in 64, 128, 256 and 512: chunks of 2048 / G, and G of them.
TEST(MetaForkTest, TeamsOutsideAndThreadsInside) {
  const auto printed = PrintMetaFork(ListingOf(Listings() / "matmul_openmp.c"), "x.c");
  ASSERT_TRUE(printed.ok()) << printed.status();
  EXPECT_THAT(*printed, HasSubstr("        for (int tmp5 = 0; tmp5 < tmp2; tmp5 += 1)\n"));
  EXPECT_THAT(*printed, HasSubstr("int tmp1 = tmp4 * tmp2 + tmp5;\n"));
  EXPECT_THAT(*printed, HasSubstr("meta_for (int tmp9 = 0; tmp9 < B1; tmp9 += 1)\n"));
  EXPECT_THAT(*printed, HasSubstr("for (int tmp8 = tmp9; tmp8 < tmp6; tmp8 += B1)\n"));
}

// Reading what was printed and printing it again gives the same text, and its loops are parallel as before.
TEST(MetaForkTest, PrintedLoopsAreReadAgain) {
  for (const auto& entry : std::filesystem::directory_iterator(Listings())) {
    const auto printed = PrintMetaFork(ListingOf(entry.path()), "x.c");
    ASSERT_TRUE(printed.ok()) << entry.path() << printed.status();
    const auto again = PrintMetaFork(*printed, "x.c");
    ASSERT_TRUE(again.ok()) << again.status() << "\n" << *printed;
    EXPECT_EQ(*again, *printed);
    // The guard of a chunk and that of the triangle in it are too much for the proofs together.
    const Verdict expected = entry.path().filename() == "lu.c" ? Verdict::kUnknown : Verdict::kIndependent;
    const auto checked = CheckLoops(*printed, "x.c");
    ASSERT_TRUE(checked.ok()) << checked.status();
    // Loops that are no OpenMP are as they were.
    const auto original = CheckLoops(ListingOf(entry.path()), "x.c");
    ASSERT_TRUE(original.ok()) << original.status();
    const bool same = original->loops.size() == checked->loops.size();
    for (size_t i = 0; i < checked->loops.size(); ++i)
      EXPECT_EQ(checked->loops[i].verdict.verdict, same ? original->loops[i].verdict.verdict : expected)
          << *printed << LoopText(checked->loops[i], "x.c");
  }
}

TEST(MetaForkTest, NamesOfItsOwnAreNotThoseOfTheText) {
  const auto printed = PrintMetaFork(
      "int n, tmp0, teams; float a[n];\n#pragma omp parallel for\nfor (int tmp1 = 0; tmp1 < n; tmp1++) "
      "a[tmp1] = tmp0;\n",
      "x.c");
  ASSERT_TRUE(printed.ok()) << printed.status();
  EXPECT_THAT(*printed, HasSubstr("int tmp2 = n;\n"));
  EXPECT_THAT(*printed, HasSubstr("#pragma fusion parameter teams_ in 1..\n"));
  EXPECT_THAT(*printed, HasSubstr("int tmp1 = tmp3;\n"));
}

TEST(MetaForkTest, WhatMetaForkLacksIsRefused) {
  const auto printed = PrintMetaFork(
      "int n; float a[n], s;\n#pragma omp parallel for reduction(+: s)\nfor (int i = 0; i < n; i++) s += "
      "a[i];\n",
      "x.c");
  EXPECT_EQ(std::string(printed.status().message()),
            "x.c:2:26: error: MetaFork has no word for the clause reduction");
}

}  // namespace
}  // namespace fusion
