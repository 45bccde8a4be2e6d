#include "server/loops/logarithmic_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <iterator>

#include "tests/folders.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;

CaseDiscussion Multiplication() {
  std::ifstream file(testing::SourceFolder() + "/examples/loops/matmul.c");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto discussions = DiscussCases(text, "matmul.c");
  EXPECT_TRUE(discussions.ok()) << discussions.status();
  return discussions.ok() ? (*discussions)[0] : CaseDiscussion();
}

// Three terms share 48 KiB in words of four bytes, so each takes 2^12 words. With B of at most 16, as
// the last slide has it, 16 is the best sum; with any B it is 18.
TEST(LogarithmicProgramTest, MultiplicationHasItsOptimum) {
  auto program = LogarithmicProgramOf(Multiplication(), 12288);
  ASSERT_TRUE(program.has_value());
  EXPECT_THAT(program->names, ElementsAre("s", "B0", "B1", "B"));
  const Deadline deadline = DeadlineAfter(std::chrono::seconds(10));
  EXPECT_NEAR(SolveLinearProgram(program->program, deadline).objective, 18, 1e-6);
  program->program.rows.push_back({{{3, 2}}, Relation::kAtMost, 8});
  const GeneralSolution solution = SolveLinearProgram(program->program, deadline);
  EXPECT_NEAR(solution.objective, 16, 1e-6);
  const std::string text = LogarithmicText(*program, solution);
  EXPECT_THAT(text, ::testing::HasSubstr("  s + B0 + B1 <= 12\n"));
  EXPECT_THAT(text, ::testing::HasSubstr("  2 B <= 8\noptimum 16:"));
}

TEST(LogarithmicProgramTest, WhatIsNoProductOfParametersHasNone) {
  CaseDiscussion discussion = Multiplication();
  discussion.granular_words = discussion.granular_words - Polynomial::Symbol("B");
  EXPECT_FALSE(LogarithmicProgramOf(discussion, 12288).has_value());
  discussion = Multiplication();
  discussion.granular_words = discussion.granular_words * Polynomial::Symbol("N");
  EXPECT_FALSE(LogarithmicProgramOf(discussion, 12288).has_value());
}

}  // namespace
}  // namespace fusion
