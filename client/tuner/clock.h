// The clock of runs.
#pragma once

#include <time.h>

#include <cstdint>

namespace fusion::tuning {

// Of the steady clock, which no one sets. About 25 ns without a system call.
inline uint64_t NowNanoseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace fusion::tuning
