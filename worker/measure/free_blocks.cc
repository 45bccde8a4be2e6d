#include "worker/measure/free_blocks.h"

#include <algorithm>

namespace fusion {
namespace {

constexpr size_t kMostBlocks = 32;

}  // namespace

std::optional<DeviceAddress> FreeBlocks::Take(int64_t bytes) {
  const int64_t most = bytes + std::max<int64_t>(bytes / 4, 1 << 20);
  auto best = free_.end();
  for (auto block = free_.begin(); block != free_.end(); ++block)
    if (block->second.bytes >= bytes && block->second.bytes <= most &&
        (best == free_.end() || block->second.bytes < best->second.bytes))
      best = block;
  if (best == free_.end()) return std::nullopt;
  const Block block = best->second;
  free_.erase(best);
  free_bytes_ -= block.bytes;
  sizes_[block.address] = block.bytes;
  return block.address;
}

std::vector<DeviceAddress> FreeBlocks::Free(DeviceAddress address, int64_t most_bytes) {
  const auto found = sizes_.find(address);
  if (found == sizes_.end()) return {address};
  free_[next_++] = {address, found->second};
  free_bytes_ += found->second;
  sizes_.erase(found);
  return Shrink(most_bytes, kMostBlocks);
}

std::vector<DeviceAddress> FreeBlocks::TakeAll() { return Shrink(0, 0); }

std::vector<DeviceAddress> FreeBlocks::Shrink(int64_t most_bytes, size_t most_blocks) {
  std::vector<DeviceAddress> dropped;
  while (!free_.empty() && (free_bytes_ > most_bytes || free_.size() > most_blocks)) {
    const auto oldest = free_.begin();
    dropped.push_back(oldest->second.address);
    free_bytes_ -= oldest->second.bytes;
    free_.erase(oldest);
  }
  return dropped;
}

}  // namespace fusion
