// Loads of row panels that do not keep memory busy.
#pragma once

#include <cstdint>

#include "server/plan/plan.h"
#include "server/search/fusion_shape.h"

namespace fusion {

// What the loads of a kernel take where they do not keep memory busy: KernelTraits::latency_seconds. Of
// single entries it is the same on two H200 and an H100, whose memory has 0.7 of the rate, and nearly so
// however many matrices there are. resident: blocks on a multiprocessor at once.
double RowLatencySeconds(const FusionShape& shape, const RowPanelNeeds& needs,
                         const SkeletonParameters& parameters, int resident, int64_t rows, int64_t columns);

}  // namespace fusion
