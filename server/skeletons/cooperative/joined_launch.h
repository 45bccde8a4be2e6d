// Kernels that run one after the other become the sections of one cooperative launch.
#pragma once

#include <string>
#include <vector>

#include "server/lowering/fusion_code.h"

namespace fusion {

// Joins all launches of all parts, in order, with a barrier of the grid between them. All have the same
// number of threads, loops that are right for any grid, and differently numbered workspace slots
// (LoweringContext's first_workspace).
FusionCode JoinLaunches(std::vector<FusionCode> parts, std::string name, std::string comment,
                        int blocks_per_multiprocessor);

}  // namespace fusion
