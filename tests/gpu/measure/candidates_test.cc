// Candidates for GPUs.
#include "tests/unit/measure/dishonest_candidates.h"

namespace fusion {

INSTANTIATE_TEST_SUITE_P(Cuda, DishonestCandidateTest, ::testing::Values(v1::CUDA));
INSTANTIATE_TEST_SUITE_P(Cuda, HonestCandidateTest, ::testing::Values(v1::CUDA));
INSTANTIATE_TEST_SUITE_P(Cuda, CrashingCandidateTest, ::testing::Values(v1::CUDA));

}  // namespace fusion
