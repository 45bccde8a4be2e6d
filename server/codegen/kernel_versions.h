// The kernels that a launch chooses from. Code that stands twice, without and with guards
// (ir::Statement::Kind::kVersions), is printed as two kernels where the host can tell before the launch which
// of them serves: each is compiled, and its registers are allocated, without the other.
#pragma once

#include <string>
#include <vector>

#include "server/lowering/fusion_code.h"

namespace fusion {

// Returns whether the kernel without guards serves at these sizes and with pointers that are multiples of
// kPointerAlignment. False where the launch has only one kernel.
bool LaunchesWhole(const KernelLaunch& launch, const SizeValues& sizes);
inline constexpr int kPointerAlignment = 16;  // bytes; fu_aligned in the device runtime
// Returns whether the kernel at these sizes needs such pointers.
bool NeedsAlignment(const KernelLaunch& launch, const SizeValues& sizes);

// These return the name and the IR of one of the two kernels. `whole`: the one without guards, which traps
// where WholeCondition does not hold.
std::string LaunchedName(const KernelLaunch& launch, bool whole);
ir::Kernel LaunchedKernel(const KernelLaunch& launch, bool whole);

// Returns all kernels that the launch chooses from, the one for any sizes first.
std::vector<ir::Kernel> LaunchableKernels(const KernelLaunch& launch);

// Makes names differ within one text with the kernels of all fusions: where names of results make two of them
// alike, as `t_whole` and `t` do, or `q_s` and a fusion of `q` and `s`, the later ones get numbers.
void NumberEqualNames(std::vector<FusionCode>* fusions);

}  // namespace fusion
