// The sizes of the grids of kernels that walk over their work.
#pragma once

#include <cstdint>

namespace fusion {

// Multiprocessors that a persistent grid of clusters of so many blocks (1: of blocks) counts on. A cluster of
// more than two lies within a group of multiprocessors, of which some are left over then: clusters of four
// and eight have 120 of 132 on an H100 (docs/decisions/0017). Blocks that are not on the device at once with
// the others begin when those have ended, which would take twice the time.
inline constexpr int kLargeClusterShare[] = {7, 8};  // seven of eight are counted on
inline int64_t GridMultiprocessors(int64_t multiprocessors, int cluster_blocks) {
  return cluster_blocks > 2 ? multiprocessors * kLargeClusterShare[0] / kLargeClusterShare[1]
                            : multiprocessors;
}

}  // namespace fusion
