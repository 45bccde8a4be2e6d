// Asks a compiler of this machine, without a worker.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"

namespace fusion {

// Compiles CUDA C++ for an architecture such as sm_90 and returns the registers that a thread of each kernel
// takes, by the kernel's name. FailedPrecondition: there is no NVRTC here. InvalidArgument: the source does
// not compile; the message has the compiler's log.
absl::StatusOr<std::map<std::string, int>> CompiledRegisters(const std::string& source,
                                                             const std::string& arch);

}  // namespace fusion
