// Goes through what a host launches, in order, at known sizes.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "server/loop_kernels/lowering.h"

namespace fusion {

// Is called with the number of the kernel, its blocks and the values of all integers at its launch.
using OnLaunch = std::function<absl::Status(int kernel, int64_t blocks, const IntegerValues& values)>;

// A program of more launches, or more steps of the host between them, is none that is worth a GPU.
inline constexpr int64_t kMostLaunches = 1 << 14, kMostHostSteps = 1 << 20;

// Goes through all launches; those without blocks are left out. InvalidArgument: an integer has no value, or
// there are more than kMostLaunches.
absl::Status ForEachLaunch(const LoopCode& code, const IntegerValues& given, const OnLaunch& on_launch);

}  // namespace fusion
