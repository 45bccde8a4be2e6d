// Loops over all cores, on the same OpenMP threads that generated host kernels use: a second pool would fight
// with theirs for the cores during timed runs.
#pragma once

#include <algorithm>
#include <cstdint>

namespace fusion {

// body(begin, end) for ranges that together are [0, count), in parallel. Ranges are multiples of `grain`
// long, except the last. body must not throw.
template <class Body>
void ParallelRanges(int64_t count, int64_t grain, Body body) {
  const int64_t ranges = (count + grain - 1) / grain;
// GCC's ThreadSanitizer does not know the OpenMP runtime's barriers.
#if !defined(__SANITIZE_THREAD__)
#pragma omp parallel for schedule(static)
#endif
  for (int64_t range = 0; range < ranges; ++range) body(range * grain, std::min(count, (range + 1) * grain));
}

}  // namespace fusion
