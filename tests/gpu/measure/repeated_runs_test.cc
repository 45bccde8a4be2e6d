// Runs back to back on the first CUDA device: one CUDA graph.
#include "tests/gpu/first_cuda_device.h"
#include "tests/unit/measure/repeated_runs_scenarios.h"

namespace fusion {
namespace {

absl::StatusOr<std::unique_ptr<ExecutionBackend>> OpenFirst() {
  absl::StatusOr<std::string> uuid = FirstCudaDevice();
  if (!uuid.ok()) return uuid.status();
  return CudaBackend::Open(*uuid);
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Cuda, RepeatedRunsTest,
                         ::testing::Values(RepeatedRunsTarget{v1::CUDA, &OpenFirst, &CudaArch}));

}  // namespace fusion
