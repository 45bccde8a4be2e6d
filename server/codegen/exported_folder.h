// The folder that a person takes away: sources that build alone with nvcc (or a C++ compiler), an example
// that runs and verifies them against an f64 reference, and how to build it.
#pragma once

#include <string>
#include <vector>

#include "fusion/v1/artifact.pb.h"
#include "server/graph/graph.h"
#include "server/lowering/fusion_code.h"
#include "server/target/exported_names.h"
#include "server/target/target.h"

namespace fusion {

struct ExportRequest {
  const Target& target;
  std::string arch;                          // what it is compiled for, "sm_90"
  std::vector<const FusionCode*> fusions;    // in schedule order
  std::vector<const FusionCode*> reference;  // unfused, f64, lowered for the host; in schedule order
  SizeValues sizes;                          // defaults of the example
  std::vector<double> tolerances;            // one per output
  std::string description;                   // for the comment at the top
  std::string verified;                      // "Verified on ...", for the same; "": it was not
  ExportedNames names;
};

// Files, where nobody asked for another name: fused.cu (or fused.cc), fused.h, fusion_device.h, reference.cc,
// verification.h, example.cu (or example.cc), CMakeLists.txt, README.md; graph.fuse or graph.json is added by
// the caller. Deterministic.
v1::Artifact ExportFolder(const Graph& graph, const ExportRequest& request);

}  // namespace fusion
