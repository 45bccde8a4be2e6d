#include "client/partition/check.h"

#include <algorithm>

#include "client/partition/readable.h"

namespace fusion {

std::optional<PartitionReason> SequentialCheck::Prepare() {
  if (!EndsAreReadable(whole_)) return PartitionReason::kUnreadable;
  const std::vector<ArrayRange>& arrays = whole_.arrays();
  if (!copies_.Allocate(arrays)) return PartitionReason::kNoMemory;
  context_ = copies_.Translate(call_.site, call_.context, call_.facts);
  before_.resize(arrays.size());
  for (uint32_t i = 0; i < arrays.size(); ++i) {
    const ByteRange& all = arrays[i].all;
    if (all.empty() || arrays[i].is_unbounded) continue;
    const size_t bytes = static_cast<size_t>(all.bytes());
    before_[i].reset(new char[bytes]);
    if (!CopyReadable(before_[i].get(), arrays[i].At(all.first), bytes)) return PartitionReason::kUnreadable;
    memory_.Upload(copies_.At(i, all.first), before_[i].get(), bytes, HostCopies(nullptr), false);
  }
  return std::nullopt;
}

template <class Visit>
void SequentialCheck::ForEachWritten(const Visit& visit) {
  for (uint32_t i = 0; i < before_.size(); ++i) {
    const ArrayRange& array = whole_.arrays()[i];
    const bool is_written_whole = whole_.IsWrittenWhole(i);
    for (int64_t byte = array.written.first; byte < array.written.last; ++byte) {
      const char sequential = *reinterpret_cast<const char*>(copies_.At(i, byte));
      const char before = before_[i][static_cast<size_t>(byte - array.all.first)];
      if (is_written_whole || sequential != before) visit(*array.At(byte), sequential, before);
    }
  }
}

// Sums are in the context; pointers in it differ.
bool SequentialCheck::ContextsAgree() const {
  const fusion_partition_site& site = call_.site;
  const char *const partitioned = static_cast<const char*>(call_.context), *const sequential =
                                                                               static_cast<const char*>(
                                                                                   context_);
  for (uint32_t byte = 0; byte < site.context_bytes; ++byte) {
    const bool is_of_pointer = std::any_of(
        site.pointer, site.pointer + site.pointers, [byte](const fusion_partition_pointer& pointer) {
          return byte >= pointer.offset && byte - pointer.offset < sizeof(void*);
        });
    if (!is_of_pointer && partitioned[byte] != sequential[byte]) return false;
  }
  return true;
}

bool SequentialCheck::Agrees() {
  call_.site.body(call_.first, call_.last, context_);
  bool agrees = call_.site.sums == 0 || ContextsAgree();
  ForEachWritten([&agrees](char host, char sequential, char) { agrees = agrees && host == sequential; });
  return agrees;
}

void SequentialCheck::Restore() {
  ForEachWritten([](char& host, char, char before) { host = before; });
}

}  // namespace fusion
