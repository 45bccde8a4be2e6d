// The plans of a loop as parameters of a section of the online tuner.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/partition/loop_tuner.h"
#include "client/tuner/fusion_tuner.h"

namespace fusion {

// With a device the parameters are "device_steps", of `steps` equal parts of the iterations, none and all
// included; "host_threads", one, half or all, where the host has a part; "chunks", "block_x" and, for loops
// with columns, "block_y" where the device has one. Without a device it is "host_threads" alone. The default
// is the host with all its threads.
class PlanSpace {
 public:
  static constexpr int64_t kMostSteps = 1000;

  PlanSpace(const LoopSpace& space, int64_t iterations);

  // Parts that the iterations are cut into: not more than there are, or several values would mean the same
  // plan. Below kMostSteps it is a power of two, so that few numbers of iterations are searched for by
  // themselves. 0 without a device.
  int64_t steps() const { return steps_; }
  // There is something to choose.
  bool HasChoice() const { return space_.has_device || threads_.size() > 1; }
  // Declares a section of these parameters for work and steps. Returns a fusion_tuner_code.
  int Declare(fusion_tuner* tuner, const std::string& name, int64_t work,
              fusion_tuner_section** section) const;
  // Returns the sizes of the section.
  std::vector<int64_t> Sizes(int64_t work) const;

  // values: those of the section, of any kind.
  LoopPlan PlanOf(const fusion_tuner_value* values) const;
  static constexpr size_t kMostParameters = 5;
  // Returns the plan of this space that is nearest to it. What means nothing in it is always the same, so
  // that equal plans are equal.
  LoopPlan Valid(LoopPlan plan) const;
  LoopPlan Default() const { return Host(space_.most_threads); }
  // Returns the host alone, with one thread and with all, and the device alone, in each number of chunks:
  // with the blocks of `like`.
  std::vector<LoopPlan> Ends(const LoopPlan& like) const;

 private:
  LoopPlan Host(int threads) const;

  LoopSpace space_;
  int64_t steps_ = 0;
  std::vector<int> threads_;
};

}  // namespace fusion
