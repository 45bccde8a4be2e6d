// Checks what cuModuleLoadData is given: it is told no size and reads as far as the image's headers say.
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace fusion {

// Returns OK for a cubin (ELF of 64 bits, machine 190 as CUDA's tools write it) whose headers, segments and
// sections, of whatever kind, and the names of the sections all lie in it, and for PTX that ends with the one
// zero that is in it; else InvalidArgument, with what is wrong. The code itself is not looked at.
absl::Status CheckDeviceCode(std::string_view content);

}  // namespace fusion
