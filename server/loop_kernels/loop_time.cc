#include "server/loop_kernels/loop_time.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "server/loop_kernels/models.h"

namespace fusion {
namespace {

// Cycles of a multiprocessor, 1.98 GHz on an H200. A multiprocessor begins a block in no less, whatever it
// does: blocks of 64 threads take 80 ns each (smoothing of 2^24 entries and addition of 8192 square).
constexpr double kBlockCycles = 158;
// Waits for loads from the first cache or shared memory, from the second cache and from device memory,
// beside others; barriers of a block; what a block and each of its warps take to begin and to end; what a
// warp takes for an instruction that needs the one before. Microbenchmarks of Hopper have 33, 260 and 700 for
// loads alone. These are rounded from the times of 25 loops (tests/bench/loops.py) on an H200; values around
// them choose cases that are about as fast.
constexpr double kNearCycles = 150, kFarCycles = 300, kMemoryCycles = 800, kBarrierCycles = 200,
                 kStartCycles = 100, kWarpStartCycles = 16, kIssueCycles = 4;
constexpr double kAdditionCycles = 4;  // an addition that needs the one before
// The second cache takes stores at this share of the rate of copies: 16.8 million of single entries, of two
// or of four take 285, 134 and 61 us (transpose of 4096 square).
constexpr double kShareOfStores = 0.5;
// Instructions of an iteration whose parts take turns.
constexpr double kUnevenInstructions = 5;
// A multiprocessor alone gets this much more than its share of the memory's rate (vector addition of
// 2^24 entries by 64 and by 128 blocks, loops_sweep.py).
constexpr double kShareAlone = 2;
// Powers whose sums say how bounds of the device overlap, and these with waiting.
constexpr double kBoundsPower = 4, kWaitingPower = 3;

double Together(std::initializer_list<double> parts, double power) {
  double sum = 0;
  for (double part : parts) sum += std::pow(part, power);
  return std::pow(sum, 1 / power);
}

}  // namespace

RunTimeEstimate EstimateLoopKernel(const LoopWork& work, const CostModel& model) {
  const DeviceDescription& device = model.device();
  const v1::TargetProfile& profile = model.target().profile();
  const double multiprocessors = std::max(1, device.multiprocessors());
  const double cores = MachineOf(device).cores_of_group;
  const double cycle = 2 * cores * multiprocessors / device.peak_flops();  // seconds
  const double resident =
      std::max(1, ResidentBlocks(device, static_cast<int>(work.threads), work.registers, work.shared_bytes));
  const double most = std::ceil(work.blocks / multiprocessors);  // blocks of a multiprocessor
  const double warps = most * work.warps;

  const double issue = warps * work.instructions * cycle * kWarpThreads / cores;
  const double turns = warps * work.turns * cycle;
  const double launched = most * kBlockCycles * cycle;
  const double busy = std::min(1.0, kShareAlone * work.blocks / multiprocessors);
  const double rate = device.copy_bytes_per_second() * busy;
  const double memory = work.memory_bytes / rate;
  const double cache =
      (work.reused_bytes + work.stored_bytes) / (rate * profile.cache_bandwidth_ratio().value());
  const double stores = work.stored_bytes / (rate * kShareOfStores);
  const double bound = Together({issue, turns, cache, std::max(memory, stores)}, kBoundsPower);

  const double loads = cycle * (work.waits * kNearCycles + work.far_waits * (kFarCycles - kNearCycles) +
                                work.memory_waits * (kMemoryCycles - kFarCycles));
  const double own = loads + cycle * (work.additions * kAdditionCycles + work.barriers * kBarrierCycles +
                                      work.instructions * kIssueCycles);
  const double ahead =
      cycle * (work.ahead_waits * kFarCycles + work.ahead_memory_waits * (kMemoryCycles - kFarCycles));
  const double uneven =
      work.uneven_waits * loads / std::max(work.waits, 1.0) +
      work.uneven_additions * cycle * (kAdditionCycles + kUnevenInstructions * kIssueCycles);
  const double waits = std::max(own, ahead);
  const double start = cycle * (kStartCycles + kWarpStartCycles * work.warps);
  const double waves = work.blocks / (multiprocessors * resident);
  const double waiting =
      std::max(start + std::max(waits, uneven), std::max(1.0, waves) * (start + work.active * waits));

  RunTimeEstimate estimate;
  estimate.bytes = work.memory_bytes;
  estimate.registers = work.registers;
  estimate.shared_bytes = work.shared_bytes;
  estimate.memory_seconds = std::max({memory, cache, stores});
  estimate.compute_seconds = std::max(issue, turns);
  estimate.issue_seconds = issue;
  estimate.launch_seconds = device.launch_seconds();
  estimate.resident_blocks = static_cast<int>(resident);
  estimate.waves = std::max(1.0, waves);
  const double together = Together({launched, Together({bound, waiting}, kWaitingPower)}, kBoundsPower);
  estimate.waiting_seconds = together - std::max(estimate.memory_seconds, estimate.compute_seconds);
  estimate.total_seconds = together + estimate.launch_seconds;
  return estimate;
}

}  // namespace fusion
