// The names under which measured times of kernels are stored (Skeleton::Variant). These texts are in stored
// rows, which are forgotten if the texts change.
#pragma once

#include <string>

#include "server/plan/plan.h"
#include "server/skeletons/shared/load_path.h"

namespace fusion {

// The numbers of any skeleton, each in its place; those that a skeleton lacks keep the values here.
struct VariantNumbers {
  int threads = 128;
  int elements_per_block = 0;
  int vector_width = 1;
  int chunks = 0;
  int threads_per_row = 0;
  int cluster_blocks = 1;
  int stages = 0;
  int unroll = 1;
  int blocks_per_multiprocessor = 1;
  int resident_blocks = 1;
  LoadPath load_path = LoadPath::kDirect;
  int rows_per_step = 1;
};
std::string VariantText(const Skeleton& skeleton, const VariantNumbers& numbers);

// Gives the positions of the kernel's own nodes in ascending order, where they are not in that order; else
// "".
std::string OrderText(const FusionImplementation& kernel);

}  // namespace fusion
