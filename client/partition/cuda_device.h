// A GPU of NVIDIA.
#pragma once

#include <sys/types.h>

#include <array>
#include <map>
#include <memory>
#include <utility>

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
  char* Staging(size_t bytes) override;
  Copied Upload(uint64_t to, const void* from, size_t bytes, const HostCopies& host, bool has_gaps) override;
  bool Download(void* to, uint64_t from, size_t bytes) override;
  bool CopyWithin(uint64_t to, uint64_t from, size_t bytes) override;
  // Finish, or the next download, says whether the iterations succeed.
  bool Run(const fusion_partition_site& site, int64_t first, int64_t last, void* context,
           const int64_t* facts, BlockShape block) override;
  bool Finish() override;

 private:
  // A file's code is known by its length and hash.
  using CodeKey = std::pair<size_t, size_t>;
  // Memory of the host that copies go through: the program's own is not pinned, as nobody says when it is
  // given back. While one of them is copied to the device the other is filled.
  struct Lane {
    void* stream = nullptr;
    char* memory = nullptr;
  };

  CudaDevice(const CudaDriver& driver, void* context, void* stream, std::array<Lane, 2> lanes, bool has_pool,
             int64_t multiprocessors);

  struct Kernel {
    void* function = nullptr;  // null: there is none
    int most_threads = 0;      // of a block
  };

  bool RunColumns(const Kernel& kernel, int64_t first, int64_t last, void* context, const int64_t* greatest,
                  BlockShape block);
  bool HasLanes();

  // Calls `call`, which returns an error or 0, in the device's context.
  template <class Call>
  bool InContext(const Call& call);
  bool Succeeded(int error);

  // These return null where there is none, said once for each code.
  Kernel KernelOf(const fusion_partition_site& site);
  void* ModuleOf(const fusion_partition_site& site);
  Kernel FindKernel(const fusion_partition_site& site);

  const CudaDriver& driver_;
  void* const context_;
  void* const stream_;
  const bool has_pool_;
  const int64_t multiprocessors_;
  const pid_t process_;
  bool is_lost_ = false;
  std::array<Lane, 2> lanes_;
  char* staging_ = nullptr;  // pinned
  size_t staging_bytes_ = 0;
  std::unique_ptr<char[]> large_staging_;  // where so much is not pinned
  std::map<const void*, Kernel>
      kernels_;                       // by what the site's state points to, which is never another loop's
  std::map<CodeKey, void*> modules_;  // null: the driver does not take the code
};

}  // namespace fusion
