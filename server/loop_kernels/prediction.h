// Predictions of loops: what kernels have to do follows from polynomials, and the cost model makes times of
// it.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "server/loop_kernels/loop_work.h"
#include "server/loops/evaluate.h"
#include "server/loops/footprint.h"
#include "server/loops/mapping.h"
#include "server/loops/nest.h"
#include "server/model/cost_model.h"

namespace fusion {

// Made once for a program; each prediction evaluates polynomials. Values are those of all integers: sizes,
// parameters, counters of the host. `cached`: what a block reads again is in shared memory.
class LoopPredictor {
 public:
  // `constants`: names that are constants in the code, as in LoopLoweringOptions.
  LoopPredictor(const MappedLoops& mapped, const std::set<std::string>& constants);

  // Returns how many kernels there are; they are in the order of LoopCode::kernels.
  size_t kernels() const { return kernels_.size(); }

  // Returns what a launch of the kernel does on a host.
  KernelTraits Traits(size_t kernel, const IntegerValues& values, bool cached) const;
  // Returns what it does on a device whose threads go in warps. `warm`: its data are in the second cache.
  LoopWork Work(size_t kernel, const IntegerValues& values, bool cached, bool warm) const {
    return kernels_[kernel].counter.Count(values, cached, warm);
  }
  RunTimeEstimate Estimate(size_t kernel, const IntegerValues& values, bool cached, bool warm,
                           const CostModel& model) const;

 private:
  struct Kernel {
    std::shared_ptr<const Nest> nest;
    KernelLoops loops;
    std::vector<TouchedBox> boxes;
    LoopWorkCounter counter;
  };
  std::vector<Kernel> kernels_;
};

}  // namespace fusion
