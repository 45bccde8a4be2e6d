// It stores results of which it is not known where they are.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace fusion {

// Stores the bytes that differ from what was there before, and touches no others. Most of a range often does
// not.
inline void StoreChanges(char* to, const char* now, const char* before, size_t bytes) {
  constexpr size_t kBlock = 256;
  for (size_t start = 0; start < bytes; start += kBlock) {
    const size_t end = std::min(bytes, start + kBlock);
    if (std::memcmp(now + start, before + start, end - start) == 0) continue;
    for (size_t byte = start; byte < end; ++byte)
      if (now[byte] != before[byte]) to[byte] = now[byte];
  }
}

}  // namespace fusion
