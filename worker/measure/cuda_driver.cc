#include "worker/measure/cuda_driver.h"

#include <dlfcn.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace fusion {
namespace {

// Finds functions in a library and remembers the first that is missing.
class Symbols {
 public:
  explicit Symbols(void* library) : library_(library) {}
  template <class Function>
  void Find(const char* name, Function* function) {
    *function = reinterpret_cast<Function>(dlsym(library_, name));
    if (*function == nullptr && missing_.empty()) missing_ = name;
  }
  const std::string& missing() const { return missing_; }

 private:
  void* const library_;
  std::string missing_;
};

absl::StatusOr<const CudaDriver*> LoadOnce() {
  static CudaDriver driver;
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return absl::NotFoundError("no CUDA driver (libcuda.so.1) on this machine");
  Symbols symbols(library);
  symbols.Find("cuInit", &driver.Init);
  symbols.Find("cuDriverGetVersion", &driver.DriverGetVersion);
  symbols.Find("cuGetErrorName", &driver.GetErrorName);
  symbols.Find("cuGetErrorString", &driver.GetErrorString);
  symbols.Find("cuDeviceGetCount", &driver.DeviceGetCount);
  symbols.Find("cuDeviceGet", &driver.DeviceGet);
  symbols.Find("cuDeviceGetName", &driver.DeviceGetName);
  symbols.Find("cuDeviceGetUuid", &driver.DeviceGetUuid);
  symbols.Find("cuDeviceTotalMem_v2", &driver.DeviceTotalMem);
  symbols.Find("cuDeviceGetAttribute", &driver.DeviceGetAttribute);
  symbols.Find("cuDevicePrimaryCtxRetain", &driver.DevicePrimaryCtxRetain);
  symbols.Find("cuDevicePrimaryCtxRelease_v2", &driver.DevicePrimaryCtxRelease);
  symbols.Find("cuCtxSetCurrent", &driver.CtxSetCurrent);
  symbols.Find("cuMemGetInfo_v2", &driver.MemGetInfo);
  symbols.Find("cuMemAlloc_v2", &driver.MemAlloc);
  symbols.Find("cuMemFree_v2", &driver.MemFree);
  symbols.Find("cuMemcpyHtoDAsync_v2", &driver.MemcpyHtoDAsync);
  symbols.Find("cuMemcpyDtoH_v2", &driver.MemcpyDtoH);
  symbols.Find("cuMemcpyDtoDAsync_v2", &driver.MemcpyDtoDAsync);
  symbols.Find("cuMemsetD8Async", &driver.MemsetD8Async);
  symbols.Find("cuMemsetD32Async", &driver.MemsetD32Async);
  symbols.Find("cuModuleLoadData", &driver.ModuleLoadData);
  symbols.Find("cuModuleUnload", &driver.ModuleUnload);
  symbols.Find("cuModuleGetFunction", &driver.ModuleGetFunction);
  symbols.Find("cuFuncGetAttribute", &driver.FuncGetAttribute);
  symbols.Find("cuFuncSetAttribute", &driver.FuncSetAttribute);
  symbols.Find("cuOccupancyMaxActiveBlocksPerMultiprocessor",
               &driver.OccupancyMaxActiveBlocksPerMultiprocessor);
  symbols.Find("cuLaunchKernel", &driver.LaunchKernel);
  symbols.Find("cuLaunchKernelEx", &driver.LaunchKernelEx);
  symbols.Find("cuStreamCreate", &driver.StreamCreate);
  symbols.Find("cuStreamDestroy_v2", &driver.StreamDestroy);
  symbols.Find("cuStreamSynchronize", &driver.StreamSynchronize);
  symbols.Find("cuStreamBeginCapture_v2", &driver.StreamBeginCapture);
  symbols.Find("cuStreamEndCapture", &driver.StreamEndCapture);
  symbols.Find("cuGraphDestroy", &driver.GraphDestroy);
  symbols.Find("cuGraphInstantiateWithFlags", &driver.GraphInstantiate);
  symbols.Find("cuGraphUpload", &driver.GraphUpload);
  symbols.Find("cuGraphLaunch", &driver.GraphLaunch);
  symbols.Find("cuGraphExecDestroy", &driver.GraphExecDestroy);
  symbols.Find("cuEventCreate", &driver.EventCreate);
  symbols.Find("cuEventDestroy_v2", &driver.EventDestroy);
  symbols.Find("cuEventRecord", &driver.EventRecord);
  symbols.Find("cuEventSynchronize", &driver.EventSynchronize);
  symbols.Find("cuEventElapsedTime", &driver.EventElapsedTime);
  if (!symbols.missing().empty())
    return absl::UnavailableError(absl::StrCat("the CUDA driver lacks ", symbols.missing(), ": too old"));
  if (int result = driver.Init(0); result != 0)
    return absl::UnavailableError(
        absl::StrCat("the CUDA driver does not start: ", driver.Check(result, "cuInit").message()));
  return &driver;
}

}  // namespace

absl::StatusOr<const CudaDriver*> CudaDriver::Load() {
  static const auto* driver = new absl::StatusOr<const CudaDriver*>(LoadOnce());
  return *driver;
}

absl::Status CudaDriver::Check(int result, const char* what) const {
  if (result == 0) return absl::OkStatus();
  const char *name = nullptr, *text = nullptr;
  if (GetErrorName(result, &name) != 0 || name == nullptr) name = "unknown error";
  if (GetErrorString(result, &text) != 0 || text == nullptr) text = "";
  const std::string message = absl::StrCat(what, ": ", name, " (", result, ") ", text);
  switch (result) {
    case 2:  // OUT_OF_MEMORY
      return absl::ResourceExhaustedError(message);
    case 46:   // DEVICE_UNAVAILABLE
    case 214:  // ECC_UNCORRECTABLE
    case 220:  // NVLINK_UNCORRECTABLE
    case 226:  // CONTAINED
    case 700:  // ILLEGAL_ADDRESS
    case 702:  // LAUNCH_TIMEOUT
    case 709:  // CONTEXT_IS_DESTROYED
    case 710:  // ASSERT
    case 714:  // HARDWARE_STACK_ERROR
    case 715:  // ILLEGAL_INSTRUCTION
    case 716:  // MISALIGNED_ADDRESS
    case 717:  // INVALID_ADDRESS_SPACE
    case 718:  // INVALID_PC
    case 719:  // LAUNCH_FAILED
    case 721:  // TENSOR_MEMORY_LEAK
    case 999:  // UNKNOWN
      return absl::AbortedError(message);
    default:
      return absl::InvalidArgumentError(message);
  }
}

const Nvml* Nvml::Load() {
  static const Nvml* loaded = []() -> const Nvml* {
    static Nvml nvml;
    void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return nullptr;
    Symbols symbols(library);
    symbols.Find("nvmlInit_v2", &nvml.Init);
    symbols.Find("nvmlSystemGetDriverVersion", &nvml.SystemGetDriverVersion);
    symbols.Find("nvmlDeviceGetHandleByUUID", &nvml.DeviceGetHandleByUuid);
    symbols.Find("nvmlDeviceGetClockInfo", &nvml.DeviceGetClockInfo);
    symbols.Find("nvmlDeviceGetCurrentClocksThrottleReasons", &nvml.DeviceGetThrottleReasons);
    symbols.Find("nvmlDeviceGetTemperature", &nvml.DeviceGetTemperature);
    return symbols.missing().empty() && nvml.Init() == 0 ? &nvml : nullptr;
  }();
  return loaded;
}

std::string ThrottleReasonNames(uint64_t reasons) {
  // nvml.h, nvmlClocksThrottleReasons. Idle (1) and clocks set by an application (2) are not throttling.
  static constexpr struct {
    uint64_t bit;
    const char* name;
  } kReasons[] = {{0x4, "software power cap"},
                  {0x8, "hardware slowdown"},
                  {0x10, "sync boost"},
                  {0x20, "software thermal slowdown"},
                  {0x40, "hardware thermal slowdown"},
                  {0x80, "hardware power brake"},
                  {0x100, "display clocks"}};
  std::vector<std::string> names;
  for (const auto& reason : kReasons)
    if (reasons & reason.bit) names.push_back(reason.name);
  return absl::StrJoin(names, ", ");
}

}  // namespace fusion
