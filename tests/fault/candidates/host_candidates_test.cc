// Candidates for the host.
#include "tests/unit/measure/dishonest_candidates.h"

namespace fusion {

INSTANTIATE_TEST_SUITE_P(Host, DishonestCandidateTest, ::testing::Values(v1::HOST));
INSTANTIATE_TEST_SUITE_P(Host, HonestCandidateTest, ::testing::Values(v1::HOST));
INSTANTIATE_TEST_SUITE_P(Host, CrashingCandidateTest, ::testing::Values(v1::HOST));

}  // namespace fusion
