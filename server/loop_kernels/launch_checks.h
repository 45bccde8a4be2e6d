// Checks that exported code makes before it launches kernels of loops.
#pragma once

#include <string>
#include <vector>

#include "server/loop_kernels/interface.h"

namespace fusion {

struct LaunchCheck {
  std::string condition;  // in C, over the parameters of fused_launch and constants of the text
  std::string code;       // what is returned where it holds: "FUSED_INVALID_ARGUMENT"
};

// Returns checks of pointers and sizes, in their order: none is null, every array has entries and fewer than
// 2^31, and no array that is written overlaps another one.
std::vector<LaunchCheck> LaunchChecks(const LoopInterface& interface);

}  // namespace fusion
