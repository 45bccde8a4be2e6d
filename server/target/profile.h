// The profiles of targets, as profiles/*.textproto have them; they are built into the program.
#pragma once

#include <string>

#include "fusion/v1/target.pb.h"

namespace fusion {

// Returns profiles/cuda.textproto for "cuda". A profile that is missing or cannot be read ends the program:
// it is part of it.
const v1::TargetProfile& ProfileNamed(const std::string& name);

}  // namespace fusion
