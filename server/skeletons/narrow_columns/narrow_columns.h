// Kernels that reduce the columns of matrices with few columns and many rows: a block walks over the entries
// as they lie in memory, many rows at a time. Its lanes meet the same columns in every step, so each keeps
// what it reduces in registers; lanes with the same column are put together at the end.
#pragma once

#include "server/skeletons/narrow_columns/parameters.h"
#include "server/skeletons/skeleton.h"

namespace fusion {

const Skeleton& NarrowColumnsSkeleton();

absl::StatusOr<FusionCode> LowerNarrowColumns(LoweringContext& context);

}  // namespace fusion
