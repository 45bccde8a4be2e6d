// NVIDIA GPUs through the driver API. Data operations run on the device when NVRTC is there to compile them,
// else the data is fetched and the host does them (slower, the same results).
#pragma once

#include <set>

#include "base/status_macros.h"
#include "worker/measure/cuda_driver.h"
#include "worker/measure/cuda_support_kernels.h"
#include "worker/measure/execution_backend.h"
#include "worker/measure/free_blocks.h"

namespace fusion {

// Returns "GPU-xxxxxxxx-...", as nvidia-smi -L prints it, of every device, in the driver's order.
absl::StatusOr<std::vector<std::string>> CudaDeviceUuids();

// Returns what is known of a device without using it: its name, arch and uuid; no figures.
absl::StatusOr<v1::DeviceDescription> CudaDeviceOutline(const std::string& uuid);

class CudaBackend : public ExecutionBackend {
 public:
  // Makes the device's context current in the calling thread, the only one that may use the backend.
  // NotFound: no such device.
  static absl::StatusOr<std::unique_ptr<ExecutionBackend>> Open(const std::string& uuid);
  // Prepares this process for Open: starts the driver and compiles our kernels. Uses no device.
  static absl::Status PrepareToOpen(const std::string& uuid);
  ~CudaBackend() override;

  v1::Target target() const override { return v1::CUDA; }
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
  absl::Status WriteGuards(absl::Span<const MemoryRange> guards) override;
  absl::StatusOr<std::vector<uint64_t>> Inspect(absl::Span<const Inspection> inspections) override;

  const CudaDriver& driver() const { return driver_; }
  int Attribute(CudaDeviceAttribute attribute) const;

 private:
  // Data operations compiled by NVRTC; null members without it.
  struct SupportKernels {
    CudaFunction fill = nullptr, widen = nullptr, hash = nullptr, largest = nullptr, squares = nullptr,
                 compare = nullptr, guard = nullptr, inspect = nullptr, perturb = nullptr, excuse = nullptr;
  };
  CudaBackend(const CudaDriver& driver, CudaDevice device, std::string uuid)
      : driver_(driver), device_(device), uuid_(std::move(uuid)) {}
  static absl::StatusOr<CudaDevice> Find(const std::string& uuid);
  friend absl::StatusOr<v1::DeviceDescription> CudaDeviceOutline(const std::string& uuid);
  absl::Status Start();
  // The data operations as a cubin, compiled once in a process; empty without an NVRTC for the device.
  const std::string& SupportBinary() const;
  absl::Status LoadSupportKernels();
  // Launches with enough threads for `count` entries on our stream.
  absl::Status LaunchOver(CudaFunction function, int64_t count, std::initializer_list<const void*> arguments);
  template <class T>
  absl::StatusOr<std::vector<T>> Fetch(DeviceAddress from, int64_t count) {
    std::vector<T> data(count);
    FUSION_RETURN_IF_ERROR(CopyOut(data.data(), from, count * sizeof(T)));
    return data;
  }
  absl::Status Delay(int64_t nanoseconds);
  absl::Status SetScratch(uint64_t first, uint64_t second);
  absl::Status GetScratch(uint64_t (*words)[2]);
  // These queue the work on our stream. FetchInspected fetches what QueueInspections finds.
  absl::Status QueueGuards(absl::Span<const MemoryRange> guards);
  absl::Status QueueInspections(absl::Span<const Inspection> inspections);
  absl::StatusOr<std::vector<uint64_t>> FetchInspected(size_t count);
  absl::Status LaunchTable(CudaFunction function, InspectionTable* table, CudaPointer results);
  absl::Status Synchronize(const char* what);
  absl::StatusOr<double> EventSeconds();
  // Queues the launches on our stream, all of them so many times.
  absl::Status Launch(const std::vector<PreparedLaunch>& launches, int times = 1);
  // Captures the launches `repeat` times as one CUDA graph, which the caller destroys.
  absl::StatusOr<CudaGraphExec> Capture(const std::vector<PreparedLaunch>& launches, int repeat);
  // Returns the seconds of all runs together.
  absl::StatusOr<double> RunGraph(const std::vector<PreparedLaunch>& launches, const RunOptions& options);
  // Returns the seconds that the work queued by `work` takes on the device, which is held back for
  // `delay_nanoseconds` while the host queues it, and what `queue_more`, if given, queues behind it.
  absl::StatusOr<double> Time(const std::function<absl::Status()>& work, int64_t delay_nanoseconds,
                              const std::function<absl::Status()>& queue_more = nullptr);
  // Sets copy_bytes_per_second and copy_spread.
  absl::Status MeasureCopies(v1::DeviceDescription* device);
  absl::StatusOr<double> MeasureLaunchSeconds();

  const CudaDriver& driver_;
  const CudaDevice device_;
  const std::string uuid_;
  CudaContext context_ = nullptr;
  CudaStream stream_ = nullptr;
  CudaEvent start_ = nullptr, end_ = nullptr;
  CudaModule ptx_module_ = nullptr, support_module_ = nullptr;
  CudaFunction empty_ = nullptr, delay_ = nullptr;
  SupportKernels support_;
  CudaPointer scratch_ = 0;  // two 64-bit words
  CudaPointer flush_buffer_ = 0;
  size_t flush_bytes_ = 0;
  CudaPointer results_ = 0;  // of inspections, a 64-bit word each
  size_t results_count_ = 0;
  FreeBlocks free_blocks_;
  Nvml::Device nvml_device_ = nullptr;
  std::string driver_version_;  // as NVML has it
};

}  // namespace fusion
