#include "client/partition/cuda_driver.h"

#include <dlfcn.h>

#include <mutex>

#include "client/partition/own_threads.h"

namespace fusion {
namespace {

template <class Function>
bool FindFunction(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  return function != nullptr;
}

bool FindAllFunctions(void* library, CudaDriver& driver) {
  const auto find = [library](const char* name, auto*& function) {
    return FindFunction(library, name, function);
  };
  const bool has_pools = find("cuDeviceGetDefaultMemPool", driver.default_pool) &&
                         find("cuMemPoolSetAttribute", driver.set_pool) &&
                         find("cuMemAllocAsync", driver.allocate_in_pool) &&
                         find("cuMemFreeAsync", driver.free_in_pool);
  if (!has_pools) driver.default_pool = nullptr;
  return find("cuInit", driver.init) && find("cuGetErrorString", driver.error_text) &&
         find("cuDeviceGet", driver.device) && find("cuDeviceGetAttribute", driver.device_attribute) &&
         find("cuDevicePrimaryCtxRetain", driver.retain_context) &&
         find("cuCtxPushCurrent_v2", driver.push_context) && find("cuCtxPopCurrent_v2", driver.pop_context) &&
         find("cuStreamCreate", driver.create_stream) && find("cuStreamSynchronize", driver.synchronize) &&
         find("cuMemAlloc_v2", driver.allocate) && find("cuMemFree_v2", driver.free) &&
         find("cuMemcpyHtoDAsync_v2", driver.upload) && find("cuMemcpyDtoHAsync_v2", driver.download) &&
         find("cuMemcpyDtoDAsync_v2", driver.copy_within) &&
         find("cuMemAllocHost_v2", driver.allocate_host) && find("cuMemFreeHost", driver.free_host) &&
         find("cuModuleLoadDataEx", driver.load_module) && find("cuModuleGetFunction", driver.function) &&
         find("cuFuncGetAttribute", driver.function_attribute) && find("cuLaunchKernel", driver.launch);
}

}  // namespace

const CudaDriver* LoadCudaDriver() {
  static CudaDriver driver{};
  static const bool is_there = [] {
    const std::lock_guard<std::mutex> no_forks(LoaderMutex());
    void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    AfterLoading();
    return library != nullptr && FindAllFunctions(library, driver);
  }();
  return is_there ? &driver : nullptr;
}

}  // namespace fusion
