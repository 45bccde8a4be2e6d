// Candidates for the host.
#include "tests/unit/measure/dishonest_candidates.h"

namespace fusion {

INSTANTIATE_TEST_SUITE_P(Host, DishonestCandidateTest, ::testing::Values(v1::HOST));
INSTANTIATE_TEST_SUITE_P(Host, HonestCandidateTest, ::testing::Values(v1::HOST));
INSTANTIATE_TEST_SUITE_P(Host, CrashingCandidateTest, ::testing::Values(v1::HOST));

class SlowCandidateTest : public DishonestCandidateTest {};

// What a busy machine does by chance: runs that take long do not make the row short in which one rests that
// does nothing in its turn.
TEST_P(SlowCandidateTest, RestsInATurnAreFoundWhereSomeRunsTakeLong) {
  task_.mutable_method()->set_minimum_samples(2);
  task_.mutable_method()->set_maximum_samples(2);
  for (const int rest : {1, 2, 4})  // met in the row alone
    AddProgram(absl::StrCat("rests_in_", rest, "_of_8"),
               absl::StrCat("if (runs % 8 != ", rest, ") z[i] = x[i] + y[i]; if (i == n - 1) { ",
                            "if (runs % 2 == 1) usleep(120000); runs = runs + 1; }"),
               "extern \"C\" int usleep(unsigned);\nSTATE int runs = 0;");
  absl::StatusOr<v1::TimeResult> result = Execute();
  ASSERT_TRUE(result.ok()) << result.status();
  for (const v1::ProgramMeasurement& program : result->programs())
    EXPECT_EQ(program.outcome(), v1::WRONG_RESULT) << program.name() << ": " << program.message();
  EXPECT_EQ(result->unfused().outcome(), v1::OK) << result->unfused().message();
}

INSTANTIATE_TEST_SUITE_P(Host, SlowCandidateTest, ::testing::Values(v1::HOST));

}  // namespace fusion
