// Predictions of loops: what kernels have to do follows from polynomials, and the cost model makes times of
// it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/loops/evaluate.h"
#include "server/loops/footprint.h"
#include "server/loops/mapping.h"
#include "server/loops/nest.h"
#include "server/model/cost_model.h"

namespace fusion {

// Made once for a program; each prediction evaluates polynomials.
class LoopPredictor {
 public:
  explicit LoopPredictor(const MappedLoops& mapped);

  // Returns for how many kernels Traits may be asked; they are in the order of LoopCode::kernels.
  size_t kernels() const { return kernels_.size(); }

  // Returns what the kernel does for these values of all integers: sizes, parameters, counters of the host.
  // `cached`: what a block reads again is in shared memory.
  KernelTraits Traits(size_t kernel, const IntegerValues& values, bool cached,
                      const DeviceDescription& device) const;

 private:
  struct Kernel {
    std::shared_ptr<const Nest> nest;
    KernelLoops loops;
    std::vector<TouchedBox> boxes;
  };
  std::vector<Kernel> kernels_;
};

}  // namespace fusion
