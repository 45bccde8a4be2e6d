// The part of the CUDA driver API and of NVML that we use, loaded with dlopen: no CUDA header or library is
// needed to build, and one binary runs with and without a GPU. Prototypes and _v2 names as in cuda.h of the
// CUDA Toolkit 12 and 13.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fusion {

using CudaDevice = int;
using CudaPointer = unsigned long long;
using CudaContext = struct CUctx_st*;
using CudaModule = struct CUmod_st*;
using CudaFunction = struct CUfunc_st*;
using CudaStream = struct CUstream_st*;
using CudaEvent = struct CUevent_st*;
using CudaGraph = struct CUgraph_st*;
using CudaGraphExec = struct CUgraphExec_st*;
struct CudaUuid {
  unsigned char bytes[16];
};

// CUlaunchAttribute: an id, padded to 8 bytes, and a union of 64 bytes.
struct CudaLaunchAttribute {
  unsigned int id = 0;
  unsigned int pad = 0;
  unsigned int value[16] = {};
};
// Numbers of CUlaunchAttributeID.
enum CudaLaunchAttributeId { kLaunchCooperative = 2, kLaunchProgrammaticSerialization = 6 };

// CUlaunchConfig.
struct CudaLaunchConfig {
  unsigned int grid_x = 1, grid_y = 1, grid_z = 1;
  unsigned int block_x = 1, block_y = 1, block_z = 1;
  unsigned int shared_bytes = 0;
  CudaStream stream = nullptr;
  CudaLaunchAttribute* attributes = nullptr;
  unsigned int attribute_count = 0;
};

// Numbers of CUdevice_attribute.
enum CudaDeviceAttribute {
  kMaxThreadsPerBlock = 1,
  kMaxGridDimX = 5,
  kClockRateKilohertz = 13,
  kMultiprocessorCount = 16,
  kL2CacheBytes = 38,
  kMaxThreadsPerMultiprocessor = 39,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kMaxSharedBytesPerMultiprocessor = 81,
  kMaxRegistersPerMultiprocessor = 82,
  kMaxSharedBytesPerBlockOptIn = 97,
  kMaxBlocksPerMultiprocessor = 106,
};

// Numbers of CUfunction_attribute.
enum CudaFunctionAttribute {
  kFunctionMaxThreadsPerBlock = 0,
  kFunctionSharedBytes = 1,
  kFunctionLocalBytes = 3,
  kFunctionRegisters = 4,
  kFunctionMaxDynamicSharedBytes = 8,
};

// Results are CUresult: 0 is success. Thread safe after Load.
struct CudaDriver {
  int (*Init)(unsigned int flags);
  int (*DriverGetVersion)(int* version);
  int (*GetErrorName)(int error, const char** name);
  int (*GetErrorString)(int error, const char** text);
  int (*DeviceGetCount)(int* count);
  int (*DeviceGet)(CudaDevice* device, int ordinal);
  int (*DeviceGetName)(char* name, int length, CudaDevice device);
  int (*DeviceGetUuid)(CudaUuid* uuid, CudaDevice device);
  int (*DeviceTotalMem)(size_t* bytes, CudaDevice device);
  int (*DeviceGetAttribute)(int* value, int attribute, CudaDevice device);
  int (*DevicePrimaryCtxRetain)(CudaContext* context, CudaDevice device);
  int (*DevicePrimaryCtxRelease)(CudaDevice device);
  int (*CtxSetCurrent)(CudaContext context);
  int (*MemGetInfo)(size_t* free, size_t* total);
  int (*MemAlloc)(CudaPointer* pointer, size_t bytes);
  int (*MemFree)(CudaPointer pointer);
  int (*MemcpyHtoDAsync)(CudaPointer to, const void* from, size_t bytes, CudaStream stream);
  int (*MemcpyDtoH)(void* to, CudaPointer from, size_t bytes);
  int (*MemcpyDtoDAsync)(CudaPointer to, CudaPointer from, size_t bytes, CudaStream stream);
  int (*MemsetD8Async)(CudaPointer to, unsigned char value, size_t count, CudaStream stream);
  int (*MemsetD32Async)(CudaPointer to, unsigned int value, size_t count, CudaStream stream);
  int (*ModuleLoadData)(CudaModule* module, const void* image);
  int (*ModuleUnload)(CudaModule module);
  int (*ModuleGetFunction)(CudaFunction* function, CudaModule module, const char* name);
  int (*FuncGetAttribute)(int* value, int attribute, CudaFunction function);
  int (*FuncSetAttribute)(CudaFunction function, int attribute, int value);
  int (*OccupancyMaxActiveBlocksPerMultiprocessor)(int* blocks, CudaFunction function, int threads,
                                                   size_t dynamic_shared_bytes);
  int (*LaunchKernel)(CudaFunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                      unsigned int block_x, unsigned int block_y, unsigned int block_z,
                      unsigned int shared_bytes, CudaStream stream, void** parameters, void** extra);
  int (*LaunchKernelEx)(const CudaLaunchConfig* config, CudaFunction function, void** parameters,
                        void** extra);
  int (*StreamCreate)(CudaStream* stream, unsigned int flags);
  int (*StreamDestroy)(CudaStream stream);
  int (*StreamSynchronize)(CudaStream stream);
  int (*StreamBeginCapture)(CudaStream stream, int mode);
  int (*StreamEndCapture)(CudaStream stream, CudaGraph* graph);
  int (*GraphDestroy)(CudaGraph graph);
  int (*GraphInstantiate)(CudaGraphExec* exec, CudaGraph graph, unsigned long long flags);
  int (*GraphUpload)(CudaGraphExec exec, CudaStream stream);
  int (*GraphLaunch)(CudaGraphExec exec, CudaStream stream);
  int (*GraphExecDestroy)(CudaGraphExec exec);
  int (*EventCreate)(CudaEvent* event, unsigned int flags);
  int (*EventDestroy)(CudaEvent event);
  int (*EventRecord)(CudaEvent event, CudaStream stream);
  int (*EventSynchronize)(CudaEvent event);
  int (*EventElapsedTime)(float* milliseconds, CudaEvent start, CudaEvent end);

  // The driver, initialized once for the life of the process. NotFound without a driver, Unavailable when it
  // is there but does not start (no device, version mismatch).
  static absl::StatusOr<const CudaDriver*> Load();

  // OK, or a status as ExecutionBackend documents: Aborted for errors after which the context is unusable.
  absl::Status Check(int result, const char* what) const;
};

// NVML: clocks, temperature, driver version. All optional.
struct Nvml {
  using Device = struct nvmlDevice_st*;
  int (*Init)();
  int (*SystemGetDriverVersion)(char* version, unsigned int length);
  int (*DeviceGetHandleByUuid)(const char* uuid, Device* device);
  int (*DeviceGetClockInfo)(Device device, int type, unsigned int* megahertz);  // type 1: SM, 2: memory
  int (*DeviceGetThrottleReasons)(Device device, unsigned long long* reasons);
  int (*DeviceGetTemperature)(Device device, int sensor, unsigned int* celsius);  // sensor 0: the GPU

  // Null when there is no NVML.
  static const Nvml* Load();
};

// Names of the bits of NVML's throttle reasons that slow a device down, ", " between them; "" for none.
std::string ThrottleReasonNames(uint64_t reasons);

}  // namespace fusion
