#include "server/linear/general_program.h"

#include <gtest/gtest.h>

#include <chrono>

namespace fusion {
namespace {

Deadline InTenSeconds() { return DeadlineAfter(std::chrono::seconds(10)); }

// Chen et al. 2017, "Case selection at runtime (2/2)": x, y, z, t are the logarithms of s, B0, B1 and B. The
// print says 4, 2, 4, 4, of which the sum is 14; the program as printed has 18.
GeneralProgram InPrint() {
  GeneralProgram program;
  program.objective = {1, 1, 1, 1};
  program.rows = {{{{0, 1}, {1, 1}, {2, 1}}, Relation::kAtMost, 14},
                  {{{0, 1}, {3, 1}, {2, 1}}, Relation::kAtMost, 14},
                  {{{1, 1}, {3, 1}}, Relation::kAtMost, 14},
                  {{{1, 1}, {2, 1}}, Relation::kAtLeast, 5},
                  {{{1, 1}, {2, 1}}, Relation::kAtMost, 8},
                  {{{3, 2}}, Relation::kAtLeast, 5},
                  {{{3, 2}}, Relation::kAtMost, 8}};
  return program;
}

TEST(GeneralProgramTest, TheProgramInPrintHasABetterPoint) {
  const GeneralSolution solution = SolveLinearProgram(InPrint(), InTenSeconds());
  ASSERT_EQ(solution.outcome, GeneralOutcome::kOptimal);
  EXPECT_NEAR(solution.objective, 18, 1e-6);
  const auto& x = solution.values;
  EXPECT_LE(x[0] + x[1] + x[2], 14 + 1e-6);
  EXPECT_GE(x[1] + x[2], 5 - 1e-6);
  GeneralProgram bounded = InPrint();  // under which what is printed is the best there is
  bounded.rows.push_back({{{0, 1}, {1, 1}, {2, 1}, {3, 1}}, Relation::kAtMost, 14});
  EXPECT_NEAR(SolveLinearProgram(bounded, InTenSeconds()).objective, 14, 1e-6);
}

TEST(GeneralProgramTest, OutcomesAreToldApart) {
  GeneralProgram program;
  program.objective = {1};
  EXPECT_EQ(SolveLinearProgram(program, InTenSeconds()).outcome, GeneralOutcome::kUnbounded);
  program.rows = {{{{0, 1}}, Relation::kAtMost, 2}, {{{0, 1}}, Relation::kAtLeast, 3}};
  EXPECT_EQ(SolveLinearProgram(program, InTenSeconds()).outcome, GeneralOutcome::kInfeasible);
  program.rows = {{{{0, 2}}, Relation::kAtMost, 5}};
  EXPECT_NEAR(SolveLinearProgram(program, InTenSeconds()).objective, 2.5, 1e-9);
  program.integers = true;
  EXPECT_NEAR(SolveLinearProgram(program, InTenSeconds()).objective, 2, 1e-9);
  EXPECT_EQ(SolveLinearProgram(program, DeadlineAfter(std::chrono::seconds(-1))).outcome,
            GeneralOutcome::kUnknown);
}

}  // namespace
}  // namespace fusion
