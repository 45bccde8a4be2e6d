// What kernels of the host target compute, for CostModel: operations of vector lanes, of which the device
// does peak_flops / 2 in a second (KernelTraits::instructions). Host kernels keep what a GPU's thread has in
// registers in arrays of their lanes, so loads and stores to the first-level cache are much of it, and
// mathematical functions are calls for an entry each. Fitted by hand to kernels on an AMD EPYC (Zen 5, two
// cores, AVX-512; model_replay --dump of measured candidates): other processors differ by a factor, which the
// corrections learn (residual.h).
#pragma once

#include "library/catalog/elementary_function.h"

namespace fusion {

// Of one entry of a function that does `flops` operations by its description.
double HostEntryOperations(const ElementaryFunction& function, double flops);

// One load or store of a lane's array, in operations.
inline constexpr double kHostAccess = 3.4;
// All operations of a kernel are multiplied with this where so many lanes share the first-level cache.
double HostFactorOfLanes(int lanes);

// How they overlap with memory (KernelTraits::issue_overlap).
inline constexpr double kHostOverlap = 1.5;

}  // namespace fusion
