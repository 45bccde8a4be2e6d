// What kernels of the host target compute, for CostModel: operations of vector lanes, of which the device
// does peak_flops / 2 in a second (KernelTraits::instructions). Host kernels keep what a GPU's thread has in
// registers in arrays of their lanes, so loads and stores to the first-level cache are much of it, and
// mathematical functions are calls for an entry each. Fitted by hand to kernels on an AMD EPYC (Zen 5, two
// cores, AVX-512; model_replay --dump of measured candidates): other processors differ by a factor, which the
// corrections learn (residual.h).
#pragma once

#include "server/search/fusion_shape.h"

namespace fusion {

// Of one entry of a function that does `flops` operations by its description.
double HostEntryOperations(const std::string& function, double flops);

// Of all lanes of a fusion over vectors of `length` entries, which reads and writes so many of them.
double HostVectorOperations(const FusionShape& shape, double length, int vectors, int lanes);
// Of a row panel, whose rows are read and computed again in each phase that needs them.
double HostRowOperations(const FusionShape& shape, const RowPanelNeeds& needs, int lanes);
// Of a fusion over elements. `alone`: a thread does all of an element.
double HostElementOperations(const FusionShape& shape, int elements_per_block, bool alone);

// How they overlap with memory (KernelTraits::issue_overlap).
inline constexpr double kHostOverlap = 1.5;

}  // namespace fusion
