// The functions of the NVIDIA driver that run loops. They are found when the program runs: nothing of CUDA is
// needed to build the library or to start it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fusion {

// Every function returns 0 or an error. Contexts, streams, modules, functions and pools are the driver's own.
struct CudaDriver {
  int (*init)(unsigned flags);
  int (*error_text)(int error, const char** text);
  int (*device)(int* device, int ordinal);
  int (*device_attribute)(int* value, int attribute, int device);
  int (*retain_context)(void** context, int device);
  int (*push_context)(void* context);
  int (*pop_context)(void** context);
  int (*create_stream)(void** stream, unsigned flags);
  int (*synchronize)(void* stream);
  int (*allocate)(uint64_t* address, size_t bytes);
  int (*free)(uint64_t address);
  int (*upload)(uint64_t to, const void* from, size_t bytes, void* stream);
  int (*download)(void* to, uint64_t from, size_t bytes, void* stream);
  int (*copy_within)(uint64_t to, uint64_t from, size_t bytes, void* stream);
  int (*allocate_host)(void** memory, size_t bytes);  // pinned: copies from and to it are fast
  int (*free_host)(void* memory);
  int (*load_module)(void** module, const void* image, unsigned options, int* option, void** values);
  int (*function)(void** function, void* module, const char* name);
  int (*function_attribute)(int* value, int attribute, void* function);
  int (*launch)(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                unsigned block_y, unsigned block_z, unsigned shared_bytes, void* stream, void** parameters,
                void** extra);
  // Null in drivers before 11.2.
  int (*default_pool)(void** pool, int device);
  int (*set_pool)(void* pool, int attribute, void* value);
  int (*allocate_in_pool)(uint64_t* address, size_t bytes, void* stream);
  int (*free_in_pool)(uint64_t address, void* stream);
};

// Values of cuda.h.
inline constexpr int kCudaOutOfMemory = 2;
inline constexpr int kCudaDeinitialized = 4;     // the process is about to end
inline constexpr int kCudaMultiprocessors = 16;  // attributes of devices
inline constexpr int kCudaHasPools = 115;
inline constexpr int kCudaPoolKeeps = 4;  // an attribute of pools, uint64_t: bytes that are not given back
inline constexpr int kCudaErrorLog = 5;   // options of modules
inline constexpr int kCudaErrorLogBytes = 6;
inline constexpr int kCudaMostThreads = 0;          // an attribute of functions: of a block
inline constexpr unsigned kCudaStreamOfItsOwn = 1;  // it does not wait for the program's default stream

// Loads the driver. Returns null where there is none. It is never unloaded.
const CudaDriver* LoadCudaDriver();

}  // namespace fusion
