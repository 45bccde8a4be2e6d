// Limits of sizes, the same where they are declared and where they are given.
#pragma once

#include <cstdint>
#include <string>

#include "library/catalog/type.h"

namespace fusion {

// The largest size, and the most bytes of a variable.
inline constexpr int64_t kLargestSize = int64_t{1} << 62;

// Says what is wrong with a leading dimension, as far as the sizes are known; "" when nothing is.
std::string FewerThanColumns(const Extent& leading, const Extent& columns, const SizeValues& sizes);

// Multiplies `*bytes` by `factor` (both at least 0); returns false when the product is beyond kLargestSize.
inline bool MultiplyBytes(int64_t factor, int64_t* bytes) {
  return !__builtin_mul_overflow(*bytes, factor, bytes) && *bytes <= kLargestSize;
}

}  // namespace fusion
