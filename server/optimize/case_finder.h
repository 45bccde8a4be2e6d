// Cases of loops: values of their parameters that a device can run, and how fast they are predicted to be.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/loop_kernels/lowering.h"
#include "server/loop_kernels/prediction.h"
#include "server/model/cost_model.h"
#include "server/optimize/loop_submission.h"

namespace fusion {

// A kernel for each loop, with these values of the parameters.
struct LoopCase {
  IntegerValues parameters;
  bool cached = false;  // what a block reads again is in shared memory
  double predicted_seconds = 0;
  int registers = 0;  // of a thread, estimated; 0 on hosts
};

// Returns the cases that the device can run at the sizes of the submission, the fastest as predicted first:
// at most `most`. Parameters are powers of two within their ranges. Where the text divides by parameters and
// leaves out what is behind the last whole part, only values that leave out nothing are taken, so that all
// cases compute the same. `plain_first`: the plain case comes before all others. FailedPrecondition: there
// are none.
absl::StatusOr<std::vector<LoopCase>> FindLoopCases(const LoopSubmission& submission, const CostModel& model,
                                                    size_t most, bool plain_first = true);

class CaseFinder {
 public:
  // All of these outlive it.
  CaseFinder(const LoopSubmission& submission, const MappedLoops& mapped,
             const std::vector<CParameter>& parameters, const DeviceDescription& device);

  // Returns all values of the parameters that leave nothing out and make blocks that the device has.
  absl::StatusOr<std::vector<IntegerValues>> Points();

  // Return the point whose blocks have about 256 threads, and whose threads do least: one iteration, where
  // it can be.
  IntegerValues Plain(const std::vector<IntegerValues>& points) const;
  absl::StatusOr<IntegerValues> PlainPoint();

  // Goes through the launches at these sizes, of which predictions take some. InvalidArgument: there are too
  // many.
  absl::Status Sample(const IntegerValues& sizes, const IntegerValues& point);

  // These follow Sample. Nothing: shared memory does not hold what is cached.
  std::optional<LoopCase> Predict(const IntegerValues& point, bool cached, const CostModel& model) const;
  // Instructions of a thread in all launches, one after the other.
  double WorkOfThread(const IntegerValues& point) const;

  int64_t SharedLimit() const;  // bytes of a block

  // Returns whether values leave nothing out and make blocks that the device has.
  bool IsPossible(const IntegerValues& point) const;

 private:
  struct ThreadLoops {
    const CRegion* region;
    std::vector<const CStatement*> loops;
  };
  // A launch of a kernel stands for `weight` of them.
  struct SampledLaunch {
    size_t kernel = 0;
    IntegerValues values;
    double weight = 1;
  };

  IntegerValues With(const IntegerValues& point) const;
  std::string Names() const;
  // Finds quotients by parameters, which have to be whole unless they are rounded up, and loops over threads.
  void FindWhole();
  int64_t LeastThreads(const IntegerValues& point) const;

  const LoopSubmission& submission_;
  const MappedLoops& mapped_;
  const std::vector<CParameter>& parameters_;
  const DeviceDescription& device_;
  LoopPredictor predictor_;
  std::vector<NestQuotient> whole_;
  std::vector<std::string> whole_texts_;
  std::vector<ThreadLoops> threads_;
  std::set<std::string> threads_names_, blocks_names_;  // that say how many there are
  std::optional<LoopCode> code_;                        // whose launches are sampled
  std::vector<SampledLaunch> samples_;
  bool warm_ = false;  // most launches find their data in the second cache
};

}  // namespace fusion
