// Kernels of several loops over vectors and rows: sweeps in one launch with a barrier of the whole grid
// between them. They save launches, and rows of matrices that a later sweep reads again can stay in shared
// memory or in registers.
#pragma once

#include <vector>

#include "server/skeletons/cooperative/parameters.h"
#include "server/skeletons/skeleton.h"

namespace fusion {

const Skeleton& CooperativeSkeleton();

// Appends every kernel of the problem's sweeps that the device can run. It appends nothing when that gives no
// advantage over launches of their own.
void ConfigureCooperative(const FusionProblem& problem, std::vector<FusionImplementation>* out,
                          NearestMiss* miss);

}  // namespace fusion
