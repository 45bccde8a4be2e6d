// The code of the fusions of a cover becomes what a worker runs: a fusion::v1::Program with every size, grid
// and offset resolved to numbers.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fusion/v1/program.pb.h"
#include "server/graph/graph.h"
#include "server/lowering/fusion_code.h"

namespace fusion {

// The code of one fusion with its binary.
struct CompiledFusion {
  const FusionCode* code = nullptr;
  std::string binary;  // digest of the device code
};

struct ProgramOptions {
  std::string name;
  int multiprocessors = 1;
  bool force_f64 = false;     // the reference
  bool programmatic = false;  // v1::Launch::programmatic: CUDA code for sm_90 or later
};

// Buffers have the id of their value. Fusions run in the order given; results that are no graph output become
// temporaries.
v1::Program BuildProgram(const Graph& graph, const SizeValues& sizes,
                         const std::vector<CompiledFusion>& fusions, const ProgramOptions& options);

}  // namespace fusion
