// The source of a kernel for a compiler.
#pragma once

#include <string>

#include "server/lowering/fusion_code.h"
#include "server/target/target.h"

namespace fusion {

// Returns a compilable translation unit: device runtime, routines, kernels. `standalone`: the runtime is
// pasted in instead of included. With `sizes` the kernels that launches at these do not choose are left out.
std::string PrintSource(const FusionCode& code, const Target& target, bool standalone,
                        const SizeValues* sizes = nullptr);

}  // namespace fusion
