// The work of kernels of targets without threads of their own (Target::simt), for CostModel: operations of
// vector lanes, of which the device does peak_flops / 2 in a second (KernelTraits::instructions). Host
// kernels keep what a GPU's thread has in registers in arrays of their lanes, so loads and stores to the
// first-level cache are much of the work, and mathematical functions are calls for an entry each. The profile
// says how much.
#pragma once

#include "fusion/v1/target.pb.h"
#include "server/graph/graph.h"

namespace fusion {

// Returns the operations of one entry of a function that does `flops` operations by its description.
double HostEntryOperations(const v1::TargetProfile& profile, const ElementaryFunction& function,
                           double flops);

// All operations of a kernel are multiplied with this where so many lanes share the first-level cache.
double HostFactorOfLanes(const v1::TargetProfile& profile, int lanes);

}  // namespace fusion
