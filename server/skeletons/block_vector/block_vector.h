// Vectors that one block holds in registers: a reduction is complete when the block has reduced it, so its
// result is used by later nodes of the same kernel, and nothing is read twice. They save launches, barriers
// of the grid, and what later sweeps would read again; but one multiprocessor does all the work, so vectors
// must be short: the steps of an iterative method beside its matrix product.
#pragma once

#include "server/skeletons/block_vector/parameters.h"
#include "server/skeletons/skeleton.h"

namespace fusion {

const Skeleton& BlockVectorSkeleton();
absl::StatusOr<FusionCode> LowerBlockVector(LoweringContext& context);

}  // namespace fusion
