// The code of covers: candidates, the unfused cover and the reference.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fusion/v1/optimizer.pb.h"
#include "server/codegen/code_library.h"
#include "server/model/cost_model.h"
#include "server/optimize/pipeline_context.h"
#include "server/optimize/plans.h"
#include "server/optimize/submission.h"

namespace fusion {

// A cover with its code, and what will be reported of it.
struct PlannedCandidate {
  std::vector<const CodeUnit*> units;  // in schedule order
  v1::Candidate candidate;             // with everything known before it is built
};
// The code of all covers, of the unfused cover and of the reference.
struct GeneratedCode {
  std::unique_ptr<CodeLibrary> library;
  std::vector<PlannedCandidate> candidates;
  // Ways to compute the graph node by node: the best predicted implementations, the second best ... The
  // fastest measured one is the unfused cover that speed-ups are relative to.
  std::vector<std::vector<const CodeUnit*>> unfused;
  std::vector<const CodeUnit*> reference;
};
absl::StatusOr<GeneratedCode> GenerateCode(const Submission& submission, const CostModel& model,
                                           const Plans& plans);

// Returns the code of one cover; predicted_rank counts from 1.
absl::StatusOr<PlannedCandidate> PlanCandidate(const Submission& submission, const CostModel& model,
                                               const SearchSpace& space, const CoverSolution& cover,
                                               int predicted_rank, CodeLibrary& library);

// Returns the kernels of a candidate as one text.
std::string PrintCandidateSource(const PlannedCandidate& candidate, v1::Target target);
// Writes kernel IR and sources of every unit into the dump directory.
void DumpCode(const PipelineContext& context, const GeneratedCode& code);

}  // namespace fusion
