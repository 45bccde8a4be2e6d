// Code of which a compiler tells how many registers the cases of loops take.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fusion {

inline constexpr int64_t kProbedGranularity = 4;

struct RegisterProbe {
  // CUDA C++: kernels granular0, single0, granular1, single1 ... of granularities kProbedGranularity and 1
  std::string source;
  int kernels = 0;  // of the program
};

// InvalidArgument and NotFound as CheckLoops gives them; InvalidArgument, too, for what no kernels are made
// of. Blocks have up to 256 threads.
absl::StatusOr<RegisterProbe> ProbeRegisters(absl::string_view text, const std::string& file_name);

}  // namespace fusion
