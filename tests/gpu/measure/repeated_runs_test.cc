// Runs back to back on the first CUDA device: one CUDA graph.
#include "absl/strings/str_cat.h"
#include "tests/unit/measure/repeated_runs_scenarios.h"
#include "worker/measure/cuda_backend.h"

namespace fusion {
namespace {

absl::StatusOr<std::unique_ptr<ExecutionBackend>> OpenFirst() {
  absl::StatusOr<std::vector<std::string>> uuids = CudaDeviceUuids();
  if (!uuids.ok()) return uuids.status();
  if (uuids->empty()) return absl::NotFoundError("the CUDA driver sees no device");
  return CudaBackend::Open(uuids->front());
}

std::string Arch(const ExecutionBackend& backend) {
  const auto& cuda = static_cast<const CudaBackend&>(backend);
  return absl::StrCat("sm_", cuda.Attribute(kComputeCapabilityMajor),
                      cuda.Attribute(kComputeCapabilityMinor));
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Cuda, RepeatedRunsTest,
                         ::testing::Values(RepeatedRunsTarget{v1::CUDA, &OpenFirst, &Arch}));

}  // namespace fusion
