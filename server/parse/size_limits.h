// Limits of sizes, the same where they are declared and where they are given.
#pragma once

#include <cstdint>

namespace fusion {

// The largest size, and the most bytes of a variable.
inline constexpr int64_t kLargestSize = int64_t{1} << 62;

// Multiplies `*bytes` by `factor` (both at least 0); false when the product is beyond kLargestSize.
inline bool MultiplyBytes(int64_t factor, int64_t* bytes) {
  return !__builtin_mul_overflow(*bytes, factor, bytes) && *bytes <= kLargestSize;
}

}  // namespace fusion
