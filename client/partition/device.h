// A device with memory of its own that runs iterations of loops.
#pragma once

#include <cstddef>
#include <cstdint>

#include "client/partition/site.h"

namespace fusion {

// One thread at a time calls it. Nothing of it throws.
class PartitionDevice {
 public:
  // Addresses of allocated memory are multiples of this.
  static constexpr uint64_t kAlignment = 256;

  virtual ~PartitionDevice() = default;

  // It has failed: all that is asked of it fails from now on.
  virtual bool IsLost() const = 0;
  // Asked before anything is done for a loop. It may take long for the first loop of a file.
  virtual bool CanRun(const fusion_partition_site& site) = 0;

  // Returns 0 where there is not enough memory, or the device has failed.
  virtual uint64_t Allocate(size_t bytes) = 0;
  virtual void Free(uint64_t address) = 0;

  // These return false when the device has failed: what it was to write is then unknown.
  virtual bool Upload(uint64_t to, const void* from, size_t bytes) = 0;
  virtual bool Download(void* to, uint64_t from, size_t bytes) = 0;
  // Runs iterations `first` .. `last - 1`. The pointers in the context are addresses of the device. facts:
  // those of the call.
  virtual bool Run(const fusion_partition_site& site, int64_t first, int64_t last, void* context,
                   const int64_t* facts) = 0;
};

}  // namespace fusion
