// Classes of calls of a loop by their size.
#pragma once

#include <algorithm>
#include <cmath>

namespace fusion {

// The number of classes; they are numbered from 0.
constexpr int kSizeClasses = 252;

// Returns the class of a call with so many instructions: there are four in each octave. What is learned of
// one call holds for the calls of its class, of which another number of iterations each would be too many.
inline int SizeClassOf(double work) {
  if (!(work > 1)) return 0;
  return static_cast<int>(std::min(4 * std::log2(work), kSizeClasses - 1.0));
}

// Returns the instructions that the class begins with.
inline double WorkOfSizeClass(int size_class) { return std::exp2(size_class / 4.0); }

}  // namespace fusion
