// A point in time at which a search stops.
#pragma once

#include <algorithm>
#include <chrono>

namespace fusion {

using Deadline = std::chrono::steady_clock::time_point;

// Returns a deadline that is at most a year away.
inline Deadline DeadlineAfter(std::chrono::duration<double> time_limit) {
  constexpr std::chrono::duration<double> kLongest = std::chrono::hours(24 * 365);
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<Deadline::duration>(std::min(time_limit, kLongest));
}

}  // namespace fusion
