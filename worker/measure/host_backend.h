// The host as a device: kernels are functions of a shared object with the C interface
//   extern "C" void kernel(long long grid, void* const* arguments)
// where arguments[i] points at the value of argument i, as in CUDA's kernelParams. Kernels use OpenMP
// threads.
#pragma once

#include <map>
#include <utility>

#include "worker/measure/execution_backend.h"

namespace fusion {

class HostBackend : public ExecutionBackend {
 public:
  static absl::StatusOr<std::unique_ptr<ExecutionBackend>> Open();
  ~HostBackend() override;

  v1::Target target() const override { return v1::HOST; }
  absl::StatusOr<v1::DeviceDescription> Describe() override;
  v1::MeasurementConditions Conditions() override;
  absl::StatusOr<MemoryInfo> Memory() override;
  absl::StatusOr<DeviceAddress> Allocate(int64_t bytes) override;
  void Free(DeviceAddress address) override;
  absl::Status CopyIn(DeviceAddress to, const void* from, int64_t bytes) override;
  absl::Status CopyOut(void* to, DeviceAddress from, int64_t bytes) override;
  absl::StatusOr<std::unique_ptr<LoadedBinary>> Load(const std::string& content) override;
  absl::StatusOr<v1::KernelAttributes> Prepare(const PreparedLaunch& launch) override;
  absl::StatusOr<double> Run(const std::vector<PreparedLaunch>& launches, const RunOptions& options) override;
  double waited_share() const override { return waited_share_; }
  absl::Status Probe() override;
  absl::Status Fill(DeviceAddress to, v1::DataType type, int64_t count, const InputRule& rule,
                    uint64_t key) override;
  absl::Status Widen(DeviceAddress to_f64, DeviceAddress from, v1::DataType type, int64_t count) override;
  absl::StatusOr<uint64_t> Hash(DeviceAddress from, int64_t bytes) override;
  absl::StatusOr<ReferenceFigures> Figures(DeviceAddress reference_f64, v1::DataType type,
                                           int64_t count) override;
  absl::StatusOr<Comparison> Compare(DeviceAddress output, v1::DataType type, DeviceAddress reference_f64,
                                     int64_t count, double scale, DeviceAddress excused) override;
  absl::Status Perturb(DeviceAddress entries, int64_t count, double most, uint64_t key) override;
  absl::Status Excuse(DeviceAddress excused, DeviceAddress reference, DeviceAddress other, v1::DataType type,
                      int64_t count, double factor, bool is_first) override;

 private:
  HostBackend() = default;
  absl::Status FlushCache();
  std::map<DeviceAddress, std::pair<void*, size_t>> allocations_;  // what is mapped for each, and bytes of it
  DeviceAddress flush_buffer_ = 0;
  int64_t flush_bytes_ = 0;
  unsigned char flush_value_ = 0;
  double waited_share_ = 0;
};

// In a runner's environment: HostUuid of its parent.
inline constexpr char kHostUuidVariable[] = "FUSION_HOST_UUID";

// Identity of the host as a device, the same for every process on it: "host-<hex>".
std::string HostUuid();

}  // namespace fusion
