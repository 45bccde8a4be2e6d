#include "client/partition/array_copies.h"

#include <cstring>
#include <new>

namespace fusion {
namespace {

// No type of a context wants more.
constexpr std::align_val_t kContextAlignment{64};

}  // namespace

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
  context_.reset(::operator new(site.context_bytes, kContextAlignment));
  char* const bytes = static_cast<char*>(context_.get());
  if (site.context_bytes != 0) std::memcpy(bytes, context, site.context_bytes);
  for (uint32_t i = 0; i < site.pointers; ++i) {
    const fusion_partition_pointer& place = site.pointer[i];
    if (blocks_[place.array].allocated == 0) continue;
    uint64_t pointer;
    std::memcpy(&pointer, bytes + place.offset, sizeof(pointer));
    pointer += blocks_[place.array].copied_address - static_cast<uint64_t>(facts[place.array]);
    std::memcpy(bytes + place.offset, &pointer, sizeof(pointer));
  }
  return context_.get();
}

void ArrayCopies::FreeContext::operator()(void* context) const {
  ::operator delete(context, kContextAlignment);
}

}  // namespace fusion
