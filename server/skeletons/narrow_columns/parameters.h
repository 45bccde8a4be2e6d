#pragma once

#include "server/skeletons/shared/loop_roles.h"

namespace fusion {

// The parameters of kernels that reduce the columns of narrow matrices.
struct NarrowColumnsParameters {
  int threads = 256;                  // per block
  int vector_width = 4;               // consecutive entries per thread and load
  int unroll = 4;                     // vectors per thread and step
  int blocks_per_multiprocessor = 1;  // at most; each block walks over many steps
  LoopRoles roles;

  template <typename Archive>
  void Fields(Archive& archive) {
    archive(threads, vector_width, unroll, blocks_per_multiprocessor);
    roles.Fields(archive);
  }
};

}  // namespace fusion
