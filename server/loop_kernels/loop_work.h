// The work of a launch of a kernel of loops on a device whose threads go in warps, counted from polynomials.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "server/loop_kernels/modelled_kernel.h"
#include "server/loops/evaluate.h"
#include "server/loops/footprint.h"
#include "server/loops/nest.h"

namespace fusion {

inline constexpr double kWarpThreads = 32;

// Work of guards that fail is left out: counts are means over all blocks, those of waits of a block that has
// work.
struct LoopWork {
  double blocks = 1, threads = 1, warps = 1;  // threads and warps of a block
  double active = 1;                          // share of the blocks that have work
  double instructions = 0;                    // of a warp
  double turns = 0;                           // of a warp in the first cache or shared memory
  // Between the first caches and the second one, by all blocks: where the first cache keeps what a block uses
  // again, and where it keeps nothing from one request to the next.
  double reused_bytes = 0, requested_bytes = 0;
  double stored_bytes = 0;  // likewise, of stores
  double memory_bytes = 0;  // of device memory
  // Loads that a thread waits for, one after the other, and how many of those are not in the first cache, or
  // not in the second one either.
  double waits = 0, far_waits = 0, memory_waits = 0;
  // These loads are under way while threads do all the rest.
  double ahead_waits = 0, ahead_memory_waits = 0;
  double additions = 0;  // operations of a thread that follow each other
  // Waits and additions of a thread whose parts take turns, as a guard fails for some of them.
  double uneven_waits = 0, uneven_additions = 0;
  double barriers = 0;  // of a block
  int registers = 32;
  int64_t shared_bytes = 0;
};

// Counts for one kernel; made once for a program.
class LoopWorkCounter {
 public:
  // `constants`: names that are constants in the code.
  LoopWorkCounter(std::shared_ptr<const Nest> nest, KernelLoops loops, ModelledKernel modelled,
                  std::set<std::string> constants);

  // Returns the work with these values of all integers: sizes, parameters, counters of the host. `cached`:
  // what a block reads again is in shared memory. `warm`: all data are in the second cache before.
  LoopWork Count(const IntegerValues& known, bool cached, bool warm) const;

 private:
  class Counting;
  struct Access {
    const NestAccess* access;
    Polynomial flat;
    std::vector<Polynomial> steps;  // of `flat`, by the loops around the access
    // Conditions of guards: those that differ by what is the same for the kernel have one key.
    struct Condition {
      std::string key;
      Polynomial value;
      std::vector<Polynomial> steps;
    };
    std::vector<Condition> conditions;
  };
  bool IsInside(int loop) const;

  std::shared_ptr<const Nest> nest_;
  KernelLoops loops_;
  ModelledKernel modelled_;
  std::set<std::string> constants_;
  std::vector<TouchedBox> boxes_;
  std::vector<Access> accesses_;
};

}  // namespace fusion
