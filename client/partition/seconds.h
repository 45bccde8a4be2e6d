// Durations in seconds.
#pragma once

#include <chrono>

namespace fusion {

inline double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace fusion
