// The code of covers: candidates, the unfused cover and the reference.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fusion/v1/candidates.pb.h"
#include "server/codegen/code_library.h"
#include "server/model/cost_model.h"
#include "server/optimize/pipeline_context.h"
#include "server/optimize/plans.h"
#include "server/optimize/submission.h"

namespace fusion {

// A cover with its code.
struct CoverCode {
  std::vector<const CodeUnit*> units;  // in schedule order
  v1::PlannedCandidate candidate;      // with everything known before it is built
};
// The code of all covers, of the unfused cover and of the reference. What comes after it needs `set` alone,
// but for what learns of kernels and exports covers.
struct GeneratedCode {
  std::unique_ptr<CodeLibrary> library;
  std::vector<std::vector<const CodeUnit*>> units;  // of each candidate
  v1::CandidateSet set;
};
absl::StatusOr<GeneratedCode> GenerateCode(const Submission& submission, const CostModel& model,
                                           const Plans& plans);

// Returns the code of one cover; predicted_rank counts from 1.
absl::StatusOr<CoverCode> GenerateCover(const Submission& submission, const CostModel& model,
                                        const SearchSpace& space, const CoverSolution& cover,
                                        int predicted_rank, CodeLibrary& library);
// Adds a candidate, with its builds, behind all others.
void AddCandidate(CoverCode cover, GeneratedCode* code);

// Returns the kernels of a candidate as one text.
std::string PrintCandidateSource(const std::vector<const CodeUnit*>& units, v1::Target target);
// Writes kernel IR and sources of every unit into the dump directory, and the candidates.
void DumpCode(const PipelineContext& context, const GeneratedCode& code);

}  // namespace fusion
