#include "client/partition/array_copies.h"

namespace fusion {

ArrayCopies::~ArrayCopies() {
  for (const Block& block : blocks_)
    if (block.allocated != 0) device_.Free(block.allocated);
}

bool ArrayCopies::Allocate(const std::vector<ArrayRange>& arrays) {
  blocks_.resize(arrays.size());
  for (size_t i = 0; i < arrays.size(); ++i) {
    const ByteRange& all = arrays[i].all;
    if (all.empty() || arrays[i].is_unbounded) continue;
    const uint64_t shift = static_cast<uint64_t>(arrays[i].address + all.first) % PartitionDevice::kAlignment;
    blocks_[i].allocated = device_.Allocate(static_cast<uint64_t>(all.bytes()) + shift);
    if (blocks_[i].allocated == 0) return false;
    blocks_[i].copied_address = blocks_[i].allocated + shift - static_cast<uint64_t>(all.first);
  }
  return true;
}

void* ArrayCopies::Translate(const fusion_partition_site& site, const void* context, const int64_t* facts) {
  context_ = std::make_unique<ContextCopy>(site, context);
  context_->MovePointers(site, [&](uint32_t array) -> uint64_t {
    const Block& block = blocks_[array];
    return block.allocated == 0 ? 0 : block.copied_address - static_cast<uint64_t>(facts[array]);
  });
  return context_->get();
}

}  // namespace fusion
