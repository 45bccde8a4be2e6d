// Kernels of scalars alone: one warp, of which one thread stores.
#pragma once

#include "server/skeletons/skeleton.h"

namespace fusion {

// The skeleton's parameters are those of vectors.
const Skeleton& ScalarSkeleton();

}  // namespace fusion
