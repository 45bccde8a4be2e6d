// Pieces of device memory that are free and kept, because giving them back to the driver and getting others
// takes it milliseconds for every session.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "worker/measure/execution_backend.h"

namespace fusion {

// Knows addresses and sizes, and touches no memory. Not thread safe.
class FreeBlocks {
 public:
  // A piece that was allocated, with the bytes that it has.
  void Allocated(DeviceAddress address, int64_t bytes) { sizes_[address] = bytes; }

  // A free piece of at least so many bytes and not many more (a quarter, or a megabyte), which is in use from
  // now on.
  std::optional<DeviceAddress> Take(int64_t bytes);

  // The piece is free. Returns what is not kept, for the driver: all but the newest pieces of together at
  // most `most_bytes`.
  std::vector<DeviceAddress> Free(DeviceAddress address, int64_t most_bytes);
  // All that is free; forgets it.
  std::vector<DeviceAddress> TakeAll();

  int64_t free_bytes() const { return free_bytes_; }

 private:
  std::vector<DeviceAddress> Shrink(int64_t most_bytes, size_t most_blocks);
  struct Block {
    DeviceAddress address = 0;
    int64_t bytes = 0;
  };
  std::unordered_map<DeviceAddress, int64_t> sizes_;  // of those in use
  std::map<uint64_t, Block> free_;                    // by age
  uint64_t next_ = 0;
  int64_t free_bytes_ = 0;
};

}  // namespace fusion
