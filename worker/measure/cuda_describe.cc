// CudaBackend::Describe: what the device is and how fast it copies and launches, measured.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "worker/build/builder.h"
#include "worker/measure/cuda_backend.h"
#include "worker/measure/statistics.h"

namespace fusion {
namespace {

// f32 units of a multiprocessor (CUDA C++ Programming Guide, "Arithmetic Instructions").
int CoresPerMultiprocessor(int major, int minor) {
  const int version = 10 * major + minor;
  if (version == 60 || version == 70 || version == 72 || version == 75 || version == 80) return 64;
  return 128;
}

}  // namespace

absl::Status CudaBackend::MeasureCopies(v1::DeviceDescription* device) {
  FUSION_ASSIGN_OR_RETURN(MemoryInfo memory, Memory());
  const int64_t bytes = std::min<int64_t>(int64_t{1} << 30, memory.free_bytes / 4) / 256 * 256;
  FUSION_ASSIGN_OR_RETURN(DeviceAddress from, Allocate(bytes));
  absl::StatusOr<DeviceAddress> to = Allocate(bytes);
  if (!to.ok()) {
    Free(from);
    return to.status();
  }
  auto sample = [&]() -> absl::StatusOr<double> {
    FUSION_RETURN_IF_ERROR(Delay(20000));
    FUSION_RETURN_IF_ERROR(driver_.Check(driver_.EventRecord(start_, stream_), "cuEventRecord"));
    FUSION_RETURN_IF_ERROR(
        driver_.Check(driver_.MemcpyDtoDAsync(*to, from, bytes, stream_), "cuMemcpyDtoDAsync"));
    FUSION_RETURN_IF_ERROR(driver_.Check(driver_.EventRecord(end_, stream_), "cuEventRecord"));
    return EventSeconds();
  };
  std::vector<double> samples;
  absl::Status status =
      driver_.Check(driver_.MemsetD32Async(from, 0x3f9d70a4, bytes / 4, stream_), "cuMemsetD32Async");
  // The first copies raise the clocks and are not counted.
  for (int i = 0; status.ok() && i < 40; ++i) {
    absl::StatusOr<double> seconds = sample();
    status = seconds.status();
    if (status.ok() && i >= 20) samples.push_back(*seconds);
  }
  Free(from);
  Free(*to);
  if (!status.ok()) return status;
  const v1::Statistics times = TimeStatistics(samples);
  device->set_copy_bytes_per_second(2.0 * bytes / times.median());
  device->set_copy_spread(Uncertainty(times, samples.size()));
  return absl::OkStatus();
}

absl::StatusOr<double> CudaBackend::MeasureLaunchSeconds() {
  constexpr int kLaunches = 200;
  std::vector<double> samples;
  for (int i = 0; i < 11; ++i) {
    // All launches are queued before the first runs, as in timed programs.
    FUSION_RETURN_IF_ERROR(Delay(2000000));
    FUSION_RETURN_IF_ERROR(driver_.Check(driver_.EventRecord(start_, stream_), "cuEventRecord"));
    for (int k = 0; k < kLaunches; ++k)
      FUSION_RETURN_IF_ERROR(driver_.Check(
          driver_.LaunchKernel(empty_, 1, 1, 1, 32, 1, 1, 0, stream_, nullptr, nullptr), "fusion_empty"));
    FUSION_RETURN_IF_ERROR(driver_.Check(driver_.EventRecord(end_, stream_), "cuEventRecord"));
    FUSION_ASSIGN_OR_RETURN(double seconds, EventSeconds());
    samples.push_back(seconds / kLaunches);
  }
  return TimeStatistics(std::move(samples)).median();
}

absl::StatusOr<v1::DeviceDescription> CudaDeviceOutline(const std::string& uuid) {
  FUSION_ASSIGN_OR_RETURN(const CudaDevice found, CudaBackend::Find(uuid));
  const CudaDriver& driver = **CudaDriver::Load();
  char name[256] = {};
  int major = 0, minor = 0;
  FUSION_RETURN_IF_ERROR(driver.Check(driver.DeviceGetName(name, sizeof name, found), "cuDeviceGetName"));
  FUSION_RETURN_IF_ERROR(driver.Check(driver.DeviceGetAttribute(&major, kComputeCapabilityMajor, found),
                                      "cuDeviceGetAttribute"));
  FUSION_RETURN_IF_ERROR(driver.Check(driver.DeviceGetAttribute(&minor, kComputeCapabilityMinor, found),
                                      "cuDeviceGetAttribute"));
  v1::DeviceDescription device;
  device.set_name(name);
  device.set_target(v1::CUDA);
  device.set_arch(absl::StrCat("sm_", major, minor));
  device.set_uuid(uuid);
  return device;
}

absl::StatusOr<v1::DeviceDescription> CudaBackend::Describe() {
  v1::DeviceDescription device;
  char name[256] = {};
  size_t memory_bytes = 0;
  FUSION_RETURN_IF_ERROR(driver_.Check(driver_.DeviceGetName(name, sizeof name, device_), "cuDeviceGetName"));
  FUSION_RETURN_IF_ERROR(driver_.Check(driver_.DeviceTotalMem(&memory_bytes, device_), "cuDeviceTotalMem"));
  const int major = Attribute(kComputeCapabilityMajor), minor = Attribute(kComputeCapabilityMinor);
  device.set_name(name);
  device.set_target(v1::CUDA);
  device.set_arch(absl::StrCat("sm_", major, minor));
  device.set_driver_version(Conditions().driver_version());
  device.set_toolkit_version(CompilerVersion(v1::CUDA));
  device.set_multiprocessors(Attribute(kMultiprocessorCount));
  device.set_max_threads_per_block(Attribute(kMaxThreadsPerBlock));
  device.set_max_threads_per_multiprocessor(Attribute(kMaxThreadsPerMultiprocessor));
  device.set_max_blocks_per_multiprocessor(Attribute(kMaxBlocksPerMultiprocessor));
  device.set_registers_per_multiprocessor(Attribute(kMaxRegistersPerMultiprocessor));
  device.set_shared_bytes_per_block(Attribute(kMaxSharedBytesPerBlockOptIn));
  device.set_shared_bytes_per_multiprocessor(Attribute(kMaxSharedBytesPerMultiprocessor));
  device.set_l2_bytes(Attribute(kL2CacheBytes));
  device.set_memory_bytes(static_cast<int64_t>(memory_bytes));
  device.set_peak_flops(2.0 * CoresPerMultiprocessor(major, minor) * device.multiprocessors() * 1e3 *
                        Attribute(kClockRateKilohertz));
  device.set_uuid(uuid_);
  FUSION_RETURN_IF_ERROR(MeasureCopies(&device));
  FUSION_ASSIGN_OR_RETURN(double launch_seconds, MeasureLaunchSeconds());
  device.set_launch_seconds(launch_seconds);
  return device;
}

}  // namespace fusion
