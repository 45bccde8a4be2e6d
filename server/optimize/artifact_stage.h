// This stage stores the folders that can be fetched.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fusion/v1/artifact.pb.h"
#include "fusion/v1/candidates.pb.h"
#include "server/optimize/pipeline_context.h"
#include "server/target/device_description.h"

namespace fusion {

// Makes the folder of the candidate at this position; `description` and `verified`, which says how results
// were verified, or why they were not, are the comment at the top of its code.
using ExportCandidate = std::function<absl::StatusOr<v1::Artifact>(
    int position, const std::string& description, const std::string& verified)>;

// Stores the exported folder of each OK candidate under its rank; for CUDA with its device code, for loading
// without a compiler, if it was measured. `set` and `built` are those the candidates were measured with;
// `predicted`: they were not.
absl::Status StoreArtifacts(const v1::CandidateSet& set, const v1::BuiltCode& built, bool predicted,
                            const std::vector<v1::Candidate>& ranked, const DeviceDescription& device,
                            const ExportCandidate& export_candidate, const PipelineContext& context);

}  // namespace fusion
