// The source of a kernel for a compiler.
#pragma once

#include <string>

#include "server/lowering/fusion_code.h"

namespace fusion {

enum class Language { kCuda, kHost };

// A compilable translation unit: device runtime, routines, kernels. `standalone`: the runtime is pasted in
// instead of included. `sizes`: without the kernels that launches at these do not choose.
std::string PrintSource(const FusionCode& code, Language language, bool standalone,
                        const SizeValues* sizes = nullptr);

}  // namespace fusion
