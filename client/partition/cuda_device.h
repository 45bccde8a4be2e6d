// A GPU of NVIDIA.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>

#include "client/partition/cuda_driver.h"
#include "client/partition/device.h"

namespace fusion {

// It works in the device's primary context, which programs that use CUDA themselves share, on a stream of its
// own. The calling thread's current context is the same before and after each call. After an error it is
// lost, said once on stderr, but not where there is too little memory. A child of the process that made it
// does not touch it. Nothing is freed at its end: the driver may be gone by then.
class CudaDevice : public PartitionDevice {
 public:
  // A kernel's parameters are 4096 bytes at most, two numbers among them.
  static constexpr uint32_t kMostContextBytes = 4000;

  // Returns null where there is no GPU that works. The driver outlives the device. Throws std::bad_alloc.
  static std::unique_ptr<CudaDevice> Make(const CudaDriver& driver);

  bool IsLost() const override;
  bool CanRun(const fusion_partition_site& site) override;
  uint64_t Allocate(size_t bytes) override;
  void Free(uint64_t address) override;
  bool Upload(uint64_t to, const void* from, size_t bytes) override;
  // Waits for all that was begun before.
  bool Download(void* to, uint64_t from, size_t bytes) override;
  // Begins to run them: whether they succeed the next download says.
  bool Run(const fusion_partition_site& site, int64_t first, int64_t last, void* context,
           const int64_t* facts) override;

 private:
  bool RunColumns(void* kernel, int64_t first, int64_t last, void* context, const int64_t* greatest);
  struct Module {
    size_t hash;   // of the code: another file's may come to lie at its address
    void* module;  // null: the driver does not take the code
  };

  CudaDevice(const CudaDriver& driver, void* context, void* stream, bool has_pool);

  // Calls `call`, which returns an error or 0, in the device's context.
  template <class Call>
  bool InContext(const Call& call);
  bool Succeeded(int error);

  // These return null where there is none, said once for each code.
  void* KernelOf(const fusion_partition_site& site);
  void* ModuleOf(const fusion_partition_site& site);
  void* FindKernel(const fusion_partition_site& site);

  const CudaDriver& driver_;
  void* const context_;
  void* const stream_;
  const bool has_pool_;
  const pid_t process_;
  bool is_lost_ = false;
  std::map<const void*, void*> kernels_;  // by what the site's state points to, which is never another loop's
  std::map<const char*, Module> modules_;  // by the code's address
};

}  // namespace fusion
