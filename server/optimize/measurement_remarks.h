// Remarks tell a person what to know of the times of a result.
#pragma once

#include "fusion/v1/optimizer.pb.h"

namespace fusion {

// Sets `unreliable` and adds remarks that say, by the ranked candidates, the conditions and the device of the
// result, whether the times tell the order, how far samples spread and how many were left out, what else the
// machine did, and whether the floor is known. A quiet machine gives rise to none.
void DescribeReliability(v1::JobResult* result);

}  // namespace fusion
