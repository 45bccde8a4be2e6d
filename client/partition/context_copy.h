// A copy of a loop's context, in which pointers may be others.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

#include "client/partition/site.h"

namespace fusion {

class ContextCopy {
 public:
  // Throws std::bad_alloc.
  ContextCopy(const fusion_partition_site& site, const void* context)
      : bytes_(static_cast<char*>(::operator new(site.context_bytes, kAlignment))) {
    if (site.context_bytes != 0) std::memcpy(bytes_.get(), context, site.context_bytes);
  }

  void* get() const { return bytes_.get(); }
  // Moves each pointer by what shift_of(array) says, in bytes.
  template <class ShiftOf>
  void MovePointers(const fusion_partition_site& site, const ShiftOf& shift_of) {
    for (uint32_t i = 0; i < site.pointers; ++i) {
      char* const place = bytes_.get() + site.pointer[i].offset;
      uint64_t pointer;
      std::memcpy(&pointer, place, sizeof(pointer));
      pointer += shift_of(site.pointer[i].array);
      std::memcpy(place, &pointer, sizeof(pointer));
    }
  }

 private:
  // No type of a context wants more.
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(char* bytes) const { ::operator delete(bytes, kAlignment); }
  };
  std::unique_ptr<char, Free> bytes_;
};

}  // namespace fusion
