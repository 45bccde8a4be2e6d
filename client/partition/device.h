// A device with memory of its own that runs iterations of loops.
#pragma once

#include <cstddef>
#include <cstdint>

#include "client/partition/host_copies.h"
#include "client/partition/site.h"

namespace fusion {

enum class Copied {
  kAll,
  kUnreadable,  // some of the host's bytes are not there
  kFailed,      // the device has failed
};

// A block of the device has so many threads; 0: as the device sees fit.
struct BlockShape {
  int x = 0, y = 0;
};

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
  // Returns memory of the host for downloads, which the next call takes back. Null where there is not enough.
  virtual char* Staging(size_t bytes) = 0;

  // Has read all of `from` when it returns. has_gaps: some of it may not be there.
  virtual Copied Upload(uint64_t to, const void* from, size_t bytes, const HostCopies& host,
                        bool has_gaps) = 0;
  // These return false when the device has failed: what it was to write is then unknown. Downloads wait for
  // all that was begun before.
  virtual bool Download(void* to, uint64_t from, size_t bytes) = 0;
  virtual bool CopyWithin(uint64_t to, uint64_t from, size_t bytes) = 0;
  // Begins to run iterations `first` .. `last - 1`. The pointers in the context are addresses of the device.
  // facts: those of the call.
  virtual bool Run(const fusion_partition_site& site, int64_t first, int64_t last, void* context,
                   const int64_t* facts, BlockShape block) = 0;
  // Waits for all that was begun.
  virtual bool Finish() = 0;
};

}  // namespace fusion
