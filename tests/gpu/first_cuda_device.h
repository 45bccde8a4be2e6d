// The device that tests of the driver API run on.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "worker/measure/cuda_backend.h"

namespace fusion {

// Returns the UUID of the first CUDA device. An error, for SKIP, where there is no driver or no device.
inline absl::StatusOr<std::string> FirstCudaDevice() {
  absl::StatusOr<std::vector<std::string>> uuids = CudaDeviceUuids();
  if (!uuids.ok()) return uuids.status();
  if (uuids->empty()) return absl::NotFoundError("the CUDA driver sees no device");
  return uuids->front();
}

// Returns the architecture of a device that CudaBackend has opened, as sm_90.
inline std::string CudaArch(const ExecutionBackend& backend) {
  const auto& cuda = static_cast<const CudaBackend&>(backend);
  return absl::StrCat("sm_", cuda.Attribute(kComputeCapabilityMajor),
                      cuda.Attribute(kComputeCapabilityMinor));
}

}  // namespace fusion
