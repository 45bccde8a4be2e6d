#pragma once

#include <vector>

#include "server/plan/plan.h"
#include "server/skeletons/shared/load_path.h"

namespace fusion {

// The parameters of kernels that are several loops with a barrier of the whole grid between them. The fields
// about rows hold for all loops over rows among them.
struct CooperativeParameters {
  int threads = 128;                  // per block
  int blocks_per_multiprocessor = 1;  // the grid walks over the work of each loop
  LoadPath load_path = LoadPath::kDirect;
  int stages = 0;
  int rows_per_step = 1;
  bool atomic = false;
  int l2_percent = 0;
  std::vector<FusionImplementation> sweeps;  // in order; together they compute the nodes

  template <typename Archive>
  void Fields(Archive& archive) {
    archive(threads, blocks_per_multiprocessor, load_path, stages, rows_per_step, atomic, l2_percent, sweeps);
  }
};

}  // namespace fusion
