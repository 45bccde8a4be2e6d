// Models of computation of loops (server/loop_kernels/models.h), as text and as JSON.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "client/cli/render.h"
#include "client/cli/source_file.h"
#include "fusion/v1/optimizer.pb.h"
#include "server/loop_kernels/modelled_program.h"
#include "server/loop_kernels/models.h"

namespace fusion {

// Returns the models of a text. Numbers that it defines are sizes where the source gives them another value.
// Errors are those of CheckLoops.
absl::StatusOr<ModelledProgram> ModelsOf(const SourceFile& file);

// {"kernels": [...], "models": [{"model", "source", "formula", "measures": {NAME: FORMULA}}]}
Json ModelsJson(const ModelledProgram& program);
std::string ModelsText(const ModelledProgram& program);

// Numbers at sizes, with values of the parameters, for a device.
struct ModelNumbers {
  IntegerValues parameters;
  std::vector<Measure<double>> measures;  // with times and their bounds
  IntegerValues preferred;                // of each granularity, by the Graham-Brent bound
};
// InvalidArgument: counts are not known.
absl::StatusOr<ModelNumbers> ModelNumbersOf(const ModelledProgram& program, const SourceFile& file,
                                            const v1::Candidate& choice, const v1::DeviceDescription& device);
// {"parameters": {...}, "models": [{"model", "measures": {NAME: NUMBER}}], "preferred_granularity": {...}}
Json NumbersJson(const ModelNumbers& numbers);
std::string NumbersText(const ModelNumbers& numbers);

}  // namespace fusion
