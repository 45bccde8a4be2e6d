// The folder that a person takes away of loops in C: sources that build alone, an example that verifies them
// against the serial program, and how to build it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fusion/v1/artifact.pb.h"
#include "fusion/v1/program.pb.h"
#include "server/loop_kernels/interface.h"
#include "server/loop_kernels/lowering.h"
#include "server/target/exported_names.h"
#include "server/target/target.h"

namespace fusion {

// Values of the parameters, with what they give.
struct LoopVariant {
  IntegerValues parameters;
  bool cached = false;
  std::string text;  // "s=4 B=256, shared a"
};

// The sizes 2^first, 2^(first + 1) ...: each stands for those that are nearest to it.
struct SizeAxis {
  std::string size;
  int first = 0, count = 1;
};
// The table says which variants are fast at which sizes.
struct VariantTable {
  std::vector<SizeAxis> axes;
  // Each cell has the numbers of all variants, the fastest first. The last axis changes first; there is one
  // cell at least.
  std::vector<std::vector<int>> orders;
};
int NearestPower(int64_t size);  // of two

struct LoopsExport {
  const Target& target;
  std::string arch;  // what it is compiled for, "sm_90"
  const CProgram& program;
  const MappedLoops& mapped;
  const LoopInterface& interface;
  std::vector<LoopVariant> variants;
  VariantTable table;           // of those that a call's sizes permit the fastest one runs
  IntegerValues least;          // values of the parameters that leave nothing out: of the reference
  IntegerValues sizes;          // defaults of the example
  const v1::Session& session;   // what values the arrays of the example have, and the tolerances
  std::string file_name, text;  // of the source
  std::string description;      // for the comment at the top
  std::string verified;         // "Verified on ...", for the same
  ExportedNames names;
};

// Files, where nobody asked for another name: fused.cu (or fused.cc), fused.h, fusion_device.h, reference.cc,
// example.cu (or example.cc), tuned.cu (or tuned.cc), which chooses the variant while it runs (client/tuner),
// loops.c, CMakeLists.txt, README.md. Deterministic. Errors are those of LowerLoops.
absl::StatusOr<v1::Artifact> ExportLoops(const LoopsExport& request);

}  // namespace fusion
