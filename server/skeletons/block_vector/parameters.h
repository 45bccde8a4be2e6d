#pragma once

namespace fusion {

// The parameters of kernels over vectors that one block holds in its registers.
struct BlockVectorParameters {
  int threads = 128;
  int vector_width = 1;  // consecutive entries per thread and load
  int chunks = 1;        // so many of these a thread, which together hold a whole vector

  template <typename Archive>
  void Fields(Archive& archive) {
    archive(threads, vector_width, chunks);
  }
};

}  // namespace fusion
