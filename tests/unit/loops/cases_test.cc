#include "server/loops/cases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "tests/folders.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Listing(const std::string& name) {
  std::ifstream file(testing::SourceFolder() + "/examples/loops/" + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

CaseDiscussion Discussed(const std::string& name) {
  const auto discussions = DiscussCases(Listing(name), name);
  EXPECT_TRUE(discussions.ok()) << discussions.status();
  if (!discussions.ok() || discussions->size() != 1) return {};
  return (*discussions)[0];
}

// "CONSTRAINTS: STRATEGIES" of each case.
std::vector<std::string> Lines(const CaseDiscussion& discussion) {
  std::vector<std::string> lines;
  for (const KernelCase& one : discussion.cases) {
    std::string line = absl::StrCat(ConstraintsText(one, discussion.parameters), ":");
    for (Strategy strategy : one.strategies) absl::StrAppend(&line, " ", StrategyName(strategy));
    lines.push_back(std::move(line));
  }
  return lines;
}

// In print the second and third case of the first path have 3 <= R_B (8 <= R_B below), which the other path
// has too; and the primed second case says Z_B < 2sB, though its granularity is 1: points of no case, and of
// two.
TEST(CasesTest, ReversalHasTheSystemsInPrintRepaired) {
  const CaseDiscussion discussion = Discussed("reversal.c");
  EXPECT_THAT(discussion.cached, ElementsAre("a", "c"));
  EXPECT_EQ(discussion.granularity, "s");
  EXPECT_THAT(Lines(discussion), ElementsAre("2*s*B <= Z_B, 4 <= R_B: (1) (4a) (3a) (2) (2)",             //
                                             "2*B <= Z_B < 2*s*B, 4 <= R_B: (1) (3b) (4a) (3a) (2) (2)",  //
                                             "Z_B < 2*B, 4 <= R_B: (1) (3b) (2) (2) (4b)",                //
                                             "2*B <= Z_B, 3 <= R_B < 4: (2) (2) (3b) (1) (4a) (3a)",      //
                                             "Z_B < 2*B, 3 <= R_B < 4: (2) (2) (3b) (1) (4b)"));
}

TEST(CasesTest, JacobiHasTheSystemsInPrint) {
  EXPECT_THAT(Lines(Discussed("jacobi.c")),
              ElementsAre("2*s*B + 2 <= Z_B, 9 <= R_B: (1) (4a) (3a) (2) (2)",                 //
                          "2*B + 2 <= Z_B < 2*s*B + 2, 9 <= R_B: (1) (3b) (4a) (3a) (2) (2)",  //
                          "Z_B < 2*B + 2, 9 <= R_B: (1) (3b) (2) (2) (4b)"));
}

TEST(CasesTest, MultiplicationHasTheSystemsInPrintRepaired) {
  const CaseDiscussion discussion = Discussed("matmul.c");
  EXPECT_THAT(discussion.cached, ElementsAre("c", "a", "b"));
  EXPECT_THAT(
      Lines(discussion),
      ElementsAre(
          "s*B0*B1 + s*B1*B + B0*B <= Z_B, 9 <= R_B: (1) (4a) (3a) (2) (2)",                             //
          "B0*B1 + B0*B + B1*B <= Z_B < s*B0*B1 + s*B1*B + B0*B, 9 <= R_B: (1) (3b) (4a) (3a) (2) (2)",  //
          "Z_B < B0*B1 + B0*B + B1*B, 9 <= R_B: (1) (3b) (2) (2) (4b)",                                  //
          "B0*B1 + B0*B + B1*B <= Z_B, 8 <= R_B < 9: (2) (2) (3b) (1) (4a) (3a)",                        //
          "Z_B < B0*B1 + B0*B + B1*B, 8 <= R_B < 9: (2) (2) (3b) (1) (4b)"));
}

// Properties (i) to (iii) of Chen et al. 2017: each system is consistent, and for all values with enough
// registers exactly one case holds.
TEST(CasesTest, ExactlyOneCaseHolds) {
  for (const char* name : {"reversal.c", "jacobi.c", "matmul.c"}) {
    const CaseDiscussion discussion = Discussed(name);
    int64_t least = 1000;
    for (const KernelCase& one : discussion.cases) least = std::min(least, one.least_registers);
    std::vector<int> held(discussion.cases.size());
    for (int64_t s : {1, 2, 3, 6})
      for (int64_t B : {1, 3, 16})
        for (int64_t B0 : {1, 8})
          for (int64_t words = 0; words < 600; words += 7)
            for (int64_t registers = least; registers < least + 3; ++registers) {
              int cases = 0;
              for (size_t i = 0; i < discussion.cases.size(); ++i)
                if (Holds(discussion.cases[i], {{"s", s}, {"B", B}, {"B0", B0}, {"B1", 4}}, words, registers))
                  ++cases, ++held[i];
              ASSERT_EQ(cases, 1) << name << " s = " << s << ", B = " << B << ", Z_B = " << words
                                  << ", R_B = " << registers;
            }
    for (int one : held) EXPECT_GT(one, 0) << name;
  }
}

TEST(CasesTest, WhatCannotBeDiscussedIsSaid) {
  const auto message = [](const std::string& text) {
    return std::string(DiscussCases(text, "x.c").status().message());
  };
  EXPECT_THAT(
      message("int n, B; float a[n*B];\nmeta_schedule { meta_for (int i = 0; i < n; i++) meta_for (int j = "
              "0; j < B; j++) a[i*B+j] = 1; }\n"),
      HasSubstr("x.c:2:17: error: registers are not known: say \"#pragma fusion registers WITH ONE\""));
  EXPECT_THAT(
      message("int n; float a[n];\n#pragma omp parallel for\nfor (int i = 0; i < n; i++) a[i] = 1;\n"),
      HasSubstr("x.c:3:1: error: registers are not known"));
  EXPECT_THAT(
      message("int n; float a[n];\n#pragma fusion parametric\nfor (int i = 1; i < n; i++) a[i] = a[i-1];\n"),
      HasSubstr("no loops are parallel"));
  EXPECT_THAT(message("int n; float a[n];\n#pragma fusion registers 3\nmeta_schedule { meta_for (int i = 0; "
                      "i < n; i++) a[i] = 1; }\n"),
              HasSubstr("x.c:2:27: error: registers are two numbers"));
}

// Where the text does not say the registers, a compiler does; and the words are those of tiles.
TEST(CasesTest, LoopsThatAreCutIntoTilesHaveCasesToo) {
  const auto discussions = DiscussCases(Listing("gemm.c"), "gemm.c", {{20, 18}, {56, 48}});
  ASSERT_TRUE(discussions.ok()) << discussions.status();
  ASSERT_EQ(discussions->size(), 2u);
  EXPECT_THAT((*discussions)[0].cached, ElementsAre("C"));
  EXPECT_THAT((*discussions)[1].cached, ElementsAre("A", "B", "C"));
  EXPECT_EQ((*discussions)[1].cases.size(), 5u);
  EXPECT_EQ((*discussions)[0].granular_words,
            (*discussions)[0].threads * Polynomial::Symbol("s0") * Polynomial::Symbol("s1"));
}

}  // namespace
}  // namespace fusion
