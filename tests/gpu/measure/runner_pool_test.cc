// Spare runners for the first CUDA device.
#include "tests/unit/measure/runner_pool_scenarios.h"

namespace fusion {

INSTANTIATE_TEST_SUITE_P(Cuda, RunnerPoolTest, ::testing::Values(v1::CUDA));

}  // namespace fusion
