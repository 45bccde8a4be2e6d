// Spare runners for the host.
#include "tests/unit/measure/runner_pool_scenarios.h"

namespace fusion {

INSTANTIATE_TEST_SUITE_P(Host, RunnerPoolTest, ::testing::Values(v1::HOST));

}  // namespace fusion
