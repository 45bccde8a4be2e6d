// This stage stores the folders that can be fetched.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "fusion/v1/optimizer.pb.h"
#include "server/optimize/build_stage.h"
#include "server/optimize/code_stage.h"
#include "server/optimize/pipeline_context.h"
#include "server/optimize/plans.h"
#include "server/optimize/submission.h"
#include "server/target/device_description.h"

namespace fusion {

// Stores the exported folder of each OK candidate under its rank; for CUDA with its device code, for loading
// without a compiler. `code` and `built` are those the candidates were measured with.
absl::Status StoreArtifacts(const Submission& submission, const DeviceDescription& device, const Plans& plans,
                            const GeneratedCode& code, const BuiltCode& built,
                            const std::vector<v1::Candidate>& ranked, const PipelineContext& context);

}  // namespace fusion
