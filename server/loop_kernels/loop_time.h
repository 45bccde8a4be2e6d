// The time of a launch of a kernel of loops on a device whose threads go in warps.
#pragma once

#include "server/loop_kernels/loop_work.h"
#include "server/model/cost_model.h"

namespace fusion {

// Two things bound a launch (Hong and Kim 2009). All blocks together need instructions, the first caches, the
// second one, device memory, and to be launched: the slowest of these is what the device does at most. And
// each block takes a while of its own, in which its threads wait for loads one after the other; a
// multiprocessor has no more blocks at once than fit it, so that more of them hide more of that. Where both
// are alike they add to each other. The model has the figures of the device alone: no bytes are in a cache
// before, but for what the counts leave out.
RunTimeEstimate EstimateLoopKernel(const LoopWork& work, const CostModel& model);

}  // namespace fusion
