// A hash that is the same in each process and build: FNV-1a.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fusion {

class StableHash {
 public:
  void Add(const void* bytes, size_t size) {
    for (size_t i = 0; i < size; ++i)
      hash_ = (hash_ ^ static_cast<const unsigned char*>(bytes)[i]) * 0x100000001b3;
  }
  uint64_t hash() const { return hash_; }

 private:
  uint64_t hash_ = 0xcbf29ce484222325;
};

}  // namespace fusion
