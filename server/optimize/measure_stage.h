// This stage times candidates and verifies their results, whatever they compute.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "fusion/v1/candidates.pb.h"
#include "server/optimize/pipeline_context.h"
#include "server/target/device_description.h"

namespace fusion {

// Raise this when the meaning of a measured time changes: it is part of the key of stored measurements.
inline constexpr int kMethodVersion = 3;
// Returns what the programs of a job are measured with: the data of `session`, the reference in f64 and the
// unfused program, both built. It is always the same for one job.
v1::Session SessionOf(v1::Session session, v1::Program reference, v1::Program unfused,
                      const std::string& job);

// Times and verifies candidates that were built; fills in their figures, and those of the unfused program in
// *result.
class CandidateTimer {
 public:
  virtual ~CandidateTimer() = default;
  // Times the candidates at these positions, a few at a time, with the fastest unfused program; a bad one
  // harms no other.
  virtual absl::Status TimeRound(const std::vector<int>& positions) = 0;
  // Is called after the last round. Times the fastest candidates and the unfused program again, in turn in
  // one process, so that they meet the same conditions. All measurements go to the store. FailedPrecondition
  // when nothing could be measured.
  virtual absl::Status Finish() = 0;
};
// All arguments must outlive the timer; reference and unfused programs must be built before the first round.
// `quick`: for a first answer, with fewer samples.
std::unique_ptr<CandidateTimer> MakeCandidateTimer(const DeviceDescription& device, bool quick,
                                                   const v1::BuiltCode& built, const PipelineContext& context,
                                                   v1::CandidateSet* set, v1::JobResult* result);

}  // namespace fusion
