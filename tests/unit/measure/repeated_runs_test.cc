// Runs back to back on the host.
#include "tests/unit/measure/repeated_runs_scenarios.h"
#include "worker/build/host_builder.h"
#include "worker/measure/host_backend.h"

namespace fusion {

INSTANTIATE_TEST_SUITE_P(Host, RepeatedRunsTest,
                         ::testing::Values(RepeatedRunsTarget{
                             v1::HOST, &HostBackend::Open,
                             [](const ExecutionBackend&) { return HostArch(); }}));

}  // namespace fusion
