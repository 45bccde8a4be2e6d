// It estimates how much a loop has to do, iteration by iteration.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace fusion {

// Iterations need more or fewer instructions one after the other, as those of a triangle do: a line through
// the first one and the average.
class LoopWork {
 public:
  // all: instructions of all iterations. first: those of the first one; where it is no such number all
  // iterations are alike.
  LoopWork(double all, double first, int64_t iterations) {
    const double count = static_cast<double>(std::max<int64_t>(iterations, 1)), average = all / count;
    first_ = average;
    if (!(first >= 0) || count < 2) return;
    // No iteration needs fewer than none.
    first_ = std::min(first, 2 * average);
    slope_ = 2 * (average - first_) / (count - 1);
  }

  // Returns the instructions of iterations `first` .. `last - 1`.
  double Of(int64_t first, int64_t last) const {
    const double count = static_cast<double>(last - first);
    const double middle = (static_cast<double>(first) + static_cast<double>(last) - 1) / 2;
    return std::max(0.0, count * (first_ + slope_ * middle));
  }

 private:
  double first_ = 0, slope_ = 0;
};

}  // namespace fusion
