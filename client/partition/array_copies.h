// Copies of a loop's arrays in a device's memory.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "client/partition/context_copy.h"
#include "client/partition/device.h"
#include "client/partition/ranges.h"

namespace fusion {

// Holds memory for the bytes of each array that some iterations touch, but for unbounded arrays: pointers to
// those stay as they are. A copy is aligned as the array is: the
// loop may have been compiled with that.
class ArrayCopies {
 public:
  explicit ArrayCopies(PartitionDevice& device) : device_(device) {}
  ArrayCopies(const ArrayCopies&) = delete;
  ArrayCopies& operator=(const ArrayCopies&) = delete;
  ~ArrayCopies();

  // Called once. Returns false where the device has not enough memory. Throws std::bad_alloc.
  bool Allocate(const std::vector<ArrayRange>& arrays);

  // Returns the device's address of the byte that lies so far behind the array's address.
  uint64_t At(uint32_t array, int64_t offset) const {
    return blocks_[array].copied_address + static_cast<uint64_t>(offset);
  }

  // Returns the context in which the pointers are the device's; it lives as long as this object. Throws
  // std::bad_alloc.
  void* Translate(const fusion_partition_site& site, const void* context, const int64_t* facts);

 private:
  struct Block {
    uint64_t allocated = 0;       // 0 for an array without a copy
    uint64_t copied_address = 0;  // where the array would begin
  };
  PartitionDevice& device_;
  std::vector<Block> blocks_;
  std::unique_ptr<ContextCopy> context_;
};

}  // namespace fusion
