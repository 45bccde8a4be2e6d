// This stage times candidates and verifies their results.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "fusion/v1/optimizer.pb.h"
#include "fusion/v1/program.pb.h"
#include "server/optimize/build_stage.h"
#include "server/optimize/code_stage.h"
#include "server/optimize/pipeline_context.h"
#include "server/optimize/submission.h"
#include "server/target/device_description.h"

namespace fusion {

// Raise this when the meaning of a measured time changes: it is part of the key of stored measurements.
inline constexpr int kMethodVersion = 3;
// Returns what programs for the submission are measured with: data, the reference in f64 and the unfused
// cover. It is always the same for one job.
v1::Session SessionOf(const Submission& submission, v1::Program reference, v1::Program unfused,
                      const std::string& job);

// Times and verifies candidates that were built; fills in their figures, and those of the unfused cover in
// *result.
class CandidateTimer {
 public:
  virtual ~CandidateTimer() = default;
  // Times the candidates at these positions, a few at a time, with the fastest unfused cover; a bad one harms
  // no other.
  virtual absl::Status TimeRound(const std::vector<int>& positions) = 0;
  // Is called after the last round. Times the fastest candidates and the unfused cover again, in turn in one
  // process, so that they meet the same conditions. All measurements go to the store. FailedPrecondition when
  // nothing could be measured.
  virtual absl::Status Finish() = 0;
};
// All arguments must outlive the timer; reference and unfused covers must be built before the first round.
std::unique_ptr<CandidateTimer> MakeCandidateTimer(const Submission& submission,
                                                   const DeviceDescription& device, const BuiltCode& built,
                                                   const PipelineContext& context, GeneratedCode* code,
                                                   v1::JobResult* result);

}  // namespace fusion
