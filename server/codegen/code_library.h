// The generated code of all fusion implementations that the candidates of a job use, each lowered and printed
// once.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fusion/v1/device.pb.h"
#include "fusion/v1/program.pb.h"
#include "fusion/v1/worker.pb.h"
#include "server/graph/graph.h"
#include "server/lowering/fusion_code.h"
#include "server/plan/plan.h"

namespace fusion {

// One unit of building.
struct CodeUnit {
  FusionCode code;
  std::string source;  // of the device's language, standing alone
  v1::BuildTask build;
  std::string key;  // content address of what runs: of the build, and of how its kernels are launched
};

// Returns the content address of a build, "sha256:<hex>" over source, target, arch, options and compiler,
// each with its length in front, so that moving text between fields changes the key.
std::string BuildKey(const v1::BuildTask& task, const std::string& compiler_version);

// Returns the task that builds the source for the device, with its key.
v1::BuildTask BuildOf(std::string source, const v1::DeviceDescription& device);

// Returns BuildKey of a build whose identifiers are numbered in the order in which its source names them:
// equal for kernels that different graphs name differently.
std::string NamelessBuildKey(const v1::BuildTask& task, const std::string& compiler_version);

// Not thread safe. Units live as long as the library.
class CodeLibrary {
 public:
  // Units have the kernels that are launched at `sizes`, and no others. They are lowered as for the device's
  // target; `simt`: otherwise, to try on a host what is meant for a GPU.
  CodeLibrary(const Graph& graph, const SizeValues& sizes, const v1::DeviceDescription& device,
              std::optional<bool> simt = std::nullopt);

  // Returns the unit of an implementation; equal code that is launched equally gives the same unit. Units
  // that only their launches set apart (grids of one tile a block and persistent ones) have the same build.
  // force_f64: for the reference.
  absl::StatusOr<const CodeUnit*> Add(const FusionImplementation& implementation, bool force_f64);
  // Does the same for several at once, which share one build for so many of them: where a compiler takes long
  // to begin, and what is built is of use to no other graph.
  absl::StatusOr<std::vector<const CodeUnit*>> AddTogether(
      const std::vector<FusionImplementation>& implementations, bool force_f64);
  // Returns the program that runs these units in this order. Its launches name the keys of their builds where
  // they will name binaries.
  v1::Program ProgramOf(const std::vector<const CodeUnit*>& units, const std::string& name,
                        bool force_f64) const;
  // The units stand in the order in which they were added.
  const std::vector<std::unique_ptr<CodeUnit>>& units() const { return units_; }

 private:
  absl::StatusOr<FusionCode> Lower(const FusionImplementation& implementation, bool force_f64) const;
  const CodeUnit* Keep(FusionCode code, std::string source, v1::BuildTask build);

  const Graph& graph_;
  const SizeValues sizes_;
  const v1::DeviceDescription device_;
  const bool simt_;
  std::vector<std::unique_ptr<CodeUnit>> units_;
  std::map<std::string, const CodeUnit*> by_key_;
};

}  // namespace fusion
