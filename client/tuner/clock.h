// The clock of runs.
#pragma once

#include <time.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace fusion::tuning {

// Returns the time of the steady clock, which no one sets. It takes about 25 ns without a system call.
inline uint64_t NowNanoseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

// The shortest time that the clock tells from none: what lies between two looks at it as a rule, which is
// what a look takes, or the clock's step where that is longer. Measured once.
inline double ClockSeconds() {
  static const double seconds = [] {
    std::array<uint64_t, 101> steps;
    for (uint64_t& step : steps) {
      const uint64_t start = NowNanoseconds();
      uint64_t now = start;
      while (now == start) now = NowNanoseconds();
      step = now - start;
    }
    std::nth_element(steps.begin(), steps.begin() + steps.size() / 2, steps.end());
    return static_cast<double>(steps[steps.size() / 2]) * 1e-9;
  }();
  return seconds;
}

}  // namespace fusion::tuning
