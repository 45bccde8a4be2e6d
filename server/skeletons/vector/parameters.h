#pragma once

namespace fusion {

// The parameters of kernels over vectors, and of scalars alone.
struct VectorParameters {
  int threads = 128;     // per block
  int vector_width = 1;  // consecutive entries per thread and load
  int unroll = 1;        // vectors per thread and step
  // Persistent grid: blocks <= multiprocessors * this, each walks over many tiles. 0: one tile a block, as
  // many blocks as tiles.
  int blocks_per_multiprocessor = 1;
  // Sums over the grid are added up in device memory, in any order: no partial results to combine, but other
  // last bits on every run. Cooperative kernels have this: their blocks can wait until the sums are zero.
  bool atomic = false;
  // Plain loads of 16 bytes ask the L2 cache to keep that share of the inputs (L2Use) for the next run.
  int l2_percent = 0;

  template <typename Archive>
  void Fields(Archive& archive) {
    archive(threads, vector_width, unroll, blocks_per_multiprocessor, atomic, l2_percent);
  }
};

}  // namespace fusion
