#include "worker/measure/cuda_backend.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "worker/build/nvrtc_builder.h"
#include "worker/measure/cuda_support_kernels.h"
#include "worker/measure/device_code.h"
#include "worker/measure/host_data.h"

namespace fusion {
namespace {

std::string FormatUuid(const CudaUuid& uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", uuid.bytes[i]);
    text += digits;
  }
  return text;
}

class CudaBinary : public LoadedBinary {
 public:
  CudaBinary(const CudaDriver& driver, CudaModule module) : driver_(driver), module_(module) {}
  ~CudaBinary() override { driver_.ModuleUnload(module_); }
  absl::StatusOr<void*> FindKernel(const std::string& name) override {
    CudaFunction function = nullptr;
    FUSION_RETURN_IF_ERROR(driver_.Check(driver_.ModuleGetFunction(&function, module_, name.c_str()),
                                         absl::StrCat("kernel ", name).c_str()));
    return function;
  }

 private:
  const CudaDriver& driver_;
  const CudaModule module_;
};

}  // namespace

absl::StatusOr<std::vector<std::string>> CudaDeviceUuids() {
  FUSION_ASSIGN_OR_RETURN(const CudaDriver* driver, CudaDriver::Load());
  int count = 0;
  FUSION_RETURN_IF_ERROR(driver->Check(driver->DeviceGetCount(&count), "cuDeviceGetCount"));
  std::vector<std::string> uuids;
  for (int i = 0; i < count; ++i) {
    CudaDevice device = 0;
    CudaUuid uuid{};
    FUSION_RETURN_IF_ERROR(driver->Check(driver->DeviceGet(&device, i), "cuDeviceGet"));
    FUSION_RETURN_IF_ERROR(driver->Check(driver->DeviceGetUuid(&uuid, device), "cuDeviceGetUuid"));
    uuids.push_back(FormatUuid(uuid));
  }
  return uuids;
}

absl::StatusOr<CudaDevice> CudaBackend::Find(const std::string& uuid) {
  FUSION_ASSIGN_OR_RETURN(std::vector<std::string> uuids, CudaDeviceUuids());
  const auto found = std::find(uuids.begin(), uuids.end(), uuid);
  if (found == uuids.end()) return absl::NotFoundError(absl::StrCat("no CUDA device ", uuid));
  const CudaDriver& driver = **CudaDriver::Load();
  CudaDevice device = 0;
  FUSION_RETURN_IF_ERROR(
      driver.Check(driver.DeviceGet(&device, static_cast<int>(found - uuids.begin())), "cuDeviceGet"));
  return device;
}

absl::Status CudaBackend::PrepareToOpen(const std::string& uuid) {
  FUSION_ASSIGN_OR_RETURN(const CudaDevice device, Find(uuid));
  CudaBackend(**CudaDriver::Load(), device, uuid).SupportBinary();
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ExecutionBackend>> CudaBackend::Open(const std::string& uuid) {
  FUSION_ASSIGN_OR_RETURN(const CudaDevice device, Find(uuid));
  std::unique_ptr<CudaBackend> backend(new CudaBackend(**CudaDriver::Load(), device, uuid));
  FUSION_RETURN_IF_ERROR(backend->Start());
  return std::unique_ptr<ExecutionBackend>(std::move(backend));
}

absl::Status CudaBackend::Start() {
  FUSION_RETURN_IF_ERROR(
      driver_.Check(driver_.DevicePrimaryCtxRetain(&context_, device_), "cuDevicePrimaryCtxRetain"));
  FUSION_RETURN_IF_ERROR(driver_.Check(driver_.CtxSetCurrent(context_), "cuCtxSetCurrent"));
  constexpr unsigned int kNonBlocking = 1;
  FUSION_RETURN_IF_ERROR(driver_.Check(driver_.StreamCreate(&stream_, kNonBlocking), "cuStreamCreate"));
  FUSION_RETURN_IF_ERROR(driver_.Check(driver_.EventCreate(&start_, 0), "cuEventCreate"));
  FUSION_RETURN_IF_ERROR(driver_.Check(driver_.EventCreate(&end_, 0), "cuEventCreate"));
  FUSION_RETURN_IF_ERROR(driver_.Check(driver_.ModuleLoadData(&ptx_module_, kSupportPtx), "loading our PTX"));
  FUSION_RETURN_IF_ERROR(
      driver_.Check(driver_.ModuleGetFunction(&empty_, ptx_module_, "fusion_empty"), "fusion_empty"));
  FUSION_RETURN_IF_ERROR(
      driver_.Check(driver_.ModuleGetFunction(&delay_, ptx_module_, "fusion_delay"), "fusion_delay"));
  FUSION_RETURN_IF_ERROR(driver_.Check(driver_.MemAlloc(&scratch_, 16), "cuMemAlloc"));
  return LoadSupportKernels();
}

const std::string& CudaBackend::SupportBinary() const {
  // Compiling takes a few tenths of a second, and there is one architecture in a process as a rule.
  static auto* binaries = new std::map<std::string, std::string>;
  const std::string arch =
      absl::StrCat("sm_", Attribute(kComputeCapabilityMajor), Attribute(kComputeCapabilityMinor));
  const auto [known, is_new] = binaries->try_emplace(arch);
  if (!is_new) return known->second;
  absl::StatusOr<std::unique_ptr<Builder>> builder = NvrtcBuilder::Create();
  if (!builder.ok()) return known->second;
  v1::BuildTask task;
  task.set_target(v1::CUDA);
  task.set_arch(arch);
  task.set_source(SupportKernelsSource());
  task.add_options("-default-device");
  BuildOutput output = (*builder)->Build(task, {});
  // An NVRTC older than the device cannot build for it: as without NVRTC.
  if (output.result.outcome() == v1::OK) known->second = std::move(output.binary);
  return known->second;
}

absl::Status CudaBackend::LoadSupportKernels() {
  const std::string& binary = SupportBinary();
  if (binary.empty()) return absl::OkStatus();  // the host does the data operations
  FUSION_RETURN_IF_ERROR(
      driver_.Check(driver_.ModuleLoadData(&support_module_, binary.data()), "loading our kernels"));
  const struct {
    const char* name;
    CudaFunction* function;
  } kernels[] = {{"fusion_fill", &support_.fill},       {"fusion_widen", &support_.widen},
                 {"fusion_hash", &support_.hash},       {"fusion_largest", &support_.largest},
                 {"fusion_squares", &support_.squares}, {"fusion_compare", &support_.compare},
                 {"fusion_guard", &support_.guard},     {"fusion_inspect", &support_.inspect},
                 {"fusion_perturb", &support_.perturb}, {"fusion_excuse", &support_.excuse}};
  for (const auto& kernel : kernels)
    FUSION_RETURN_IF_ERROR(
        driver_.Check(driver_.ModuleGetFunction(kernel.function, support_module_, kernel.name), kernel.name));
  return absl::OkStatus();
}

CudaBackend::~CudaBackend() {
  for (DeviceAddress block : free_blocks_.TakeAll()) driver_.MemFree(block);
  if (results_ != 0) driver_.MemFree(results_);
  if (flush_buffer_ != 0) driver_.MemFree(flush_buffer_);
  if (scratch_ != 0) driver_.MemFree(scratch_);
  if (support_module_ != nullptr) driver_.ModuleUnload(support_module_);
  if (ptx_module_ != nullptr) driver_.ModuleUnload(ptx_module_);
  if (start_ != nullptr) driver_.EventDestroy(start_);
  if (end_ != nullptr) driver_.EventDestroy(end_);
  if (stream_ != nullptr) driver_.StreamDestroy(stream_);
  if (context_ != nullptr) driver_.DevicePrimaryCtxRelease(device_);
}

int CudaBackend::Attribute(CudaDeviceAttribute attribute) const {
  int value = 0;
  return driver_.DeviceGetAttribute(&value, attribute, device_) == 0 ? value : 0;
}

absl::Status CudaBackend::Synchronize(const char* what) {
  return driver_.Check(driver_.StreamSynchronize(stream_), what);
}

v1::MeasurementConditions CudaBackend::Conditions() {
  v1::MeasurementConditions conditions;
  conditions.set_throttle_reasons("unknown");
  if (int version = 0; driver_.DriverGetVersion(&version) == 0)
    conditions.set_driver_version(absl::StrCat("CUDA ", version / 1000, ".", version % 1000 / 10));
  const Nvml* nvml = Nvml::Load();
  if (nvml == nullptr) return conditions;
  if (nvml_device_ == nullptr) {
    char driver_version[96] = {};
    if (nvml->SystemGetDriverVersion(driver_version, sizeof driver_version) == 0)
      driver_version_ = driver_version;
    if (nvml->DeviceGetHandleByUuid(uuid_.c_str(), &nvml_device_) != 0) nvml_device_ = nullptr;
  }
  if (!driver_version_.empty()) conditions.set_driver_version(driver_version_);
  Nvml::Device device = nvml_device_;
  if (device == nullptr) return conditions;
  if (unsigned int clock = 0; nvml->DeviceGetClockInfo(device, 1, &clock) == 0)
    conditions.set_sm_clock_mhz(clock);
  if (unsigned int clock = 0; nvml->DeviceGetClockInfo(device, 2, &clock) == 0)
    conditions.set_memory_clock_mhz(clock);
  if (unsigned int celsius = 0; nvml->DeviceGetTemperature(device, 0, &celsius) == 0)
    conditions.set_temperature_celsius(celsius);
  if (unsigned long long reasons = 0; nvml->DeviceGetThrottleReasons(device, &reasons) == 0)
    conditions.set_throttle_reasons(ThrottleReasonNames(reasons));
  return conditions;
}

absl::StatusOr<MemoryInfo> CudaBackend::Memory() {
  size_t free = 0, total = 0;
  FUSION_RETURN_IF_ERROR(driver_.Check(driver_.MemGetInfo(&free, &total), "cuMemGetInfo"));
  // Free blocks that are kept would be given back if something did not fit.
  return MemoryInfo{static_cast<int64_t>(free) + free_blocks_.free_bytes(), static_cast<int64_t>(total)};
}

absl::StatusOr<DeviceAddress> CudaBackend::Allocate(int64_t bytes) {
  bytes = std::max<int64_t>(bytes, 1);
  if (const std::optional<DeviceAddress> block = free_blocks_.Take(bytes)) return *block;
  const std::string what = absl::StrCat("cuMemAlloc of ", bytes, " bytes");
  CudaPointer pointer = 0;
  absl::Status status = driver_.Check(driver_.MemAlloc(&pointer, bytes), what.c_str());
  if (absl::IsResourceExhausted(status)) {
    for (DeviceAddress block : free_blocks_.TakeAll()) driver_.MemFree(block);
    status = driver_.Check(driver_.MemAlloc(&pointer, bytes), what.c_str());
  }
  FUSION_RETURN_IF_ERROR(status);
  free_blocks_.Allocated(pointer, bytes);
  return pointer;
}

void CudaBackend::Free(DeviceAddress address) {
  driver_.StreamSynchronize(stream_);
  constexpr int64_t kMostKeptBytes = int64_t{4} << 30;
  for (DeviceAddress block : free_blocks_.Free(address, kMostKeptBytes)) driver_.MemFree(block);
}

absl::Status CudaBackend::CopyIn(DeviceAddress to, const void* from, int64_t bytes) {
  if (bytes == 0) return Synchronize("cuStreamSynchronize");
  // On our stream: cuMemcpyHtoD returns when pageable memory has been read, not when the device's has been
  // written, and a stream that does not block does not wait for it. On a busy device kernels ran before what
  // they were to start from.
  FUSION_RETURN_IF_ERROR(
      driver_.Check(driver_.MemcpyHtoDAsync(to, from, bytes, stream_), "cuMemcpyHtoDAsync"));
  return Synchronize("cuStreamSynchronize");
}

absl::Status CudaBackend::CopyOut(void* to, DeviceAddress from, int64_t bytes) {
  FUSION_RETURN_IF_ERROR(Synchronize("cuStreamSynchronize"));
  return bytes == 0 ? absl::OkStatus() : driver_.Check(driver_.MemcpyDtoH(to, from, bytes), "cuMemcpyDtoH");
}

absl::StatusOr<std::unique_ptr<LoadedBinary>> CudaBackend::Load(const std::string& content) {
  FUSION_RETURN_IF_ERROR(CheckDeviceCode(content));
  CudaModule module = nullptr;
  FUSION_RETURN_IF_ERROR(driver_.Check(driver_.ModuleLoadData(&module, content.data()), "cuModuleLoadData"));
  return std::unique_ptr<LoadedBinary>(new CudaBinary(driver_, module));
}

absl::StatusOr<v1::KernelAttributes> CudaBackend::Prepare(const PreparedLaunch& launch) {
  auto* function = static_cast<CudaFunction>(launch.kernel);
  if (launch.grid > Attribute(kMaxGridDimX))
    return absl::InvalidArgumentError(
        absl::StrCat("kernel ", launch.name, ": a grid of ", launch.grid, " blocks"));
  auto get = [&](CudaFunctionAttribute attribute) {
    int value = 0;
    driver_.FuncGetAttribute(&value, attribute, function);
    return value;
  };
  if (launch.threads < 1 || launch.threads > get(kFunctionMaxThreadsPerBlock))
    return absl::InvalidArgumentError(absl::StrCat("kernel ", launch.name, ": ", launch.threads,
                                                   " threads, possible are ",
                                                   get(kFunctionMaxThreadsPerBlock)));
  if (launch.shared_bytes > get(kFunctionMaxDynamicSharedBytes))
    FUSION_RETURN_IF_ERROR(driver_.Check(
        driver_.FuncSetAttribute(function, kFunctionMaxDynamicSharedBytes,
                                 static_cast<int>(launch.shared_bytes)),
        absl::StrCat("kernel ", launch.name, ": ", launch.shared_bytes, " bytes of dynamic shared memory")
            .c_str()));
  int blocks = 0;
  FUSION_RETURN_IF_ERROR(driver_.Check(driver_.OccupancyMaxActiveBlocksPerMultiprocessor(
                                           &blocks, function, launch.threads, launch.shared_bytes),
                                       "occupancy"));
  if (blocks == 0)
    return absl::InvalidArgumentError(absl::StrCat("kernel ", launch.name, ": no block of ", launch.threads,
                                                   " threads, ", get(kFunctionRegisters), " registers and ",
                                                   launch.shared_bytes, " bytes of shared memory fits"));
  if (launch.cooperative && launch.grid > int64_t{blocks} * Attribute(kMultiprocessorCount))
    return absl::InvalidArgumentError(absl::StrCat("kernel ", launch.name, ": ", launch.grid,
                                                   " blocks wait for each other, and ", blocks,
                                                   " of them fit a multiprocessor"));
  v1::KernelAttributes attributes;
  attributes.set_kernel(launch.name);
  attributes.set_registers(get(kFunctionRegisters));
  attributes.set_spill_bytes(get(kFunctionLocalBytes));
  attributes.set_static_shared_bytes(get(kFunctionSharedBytes));
  attributes.set_blocks_per_multiprocessor(blocks);
  return attributes;
}

}  // namespace fusion
