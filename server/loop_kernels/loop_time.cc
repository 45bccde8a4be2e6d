#include "server/loop_kernels/loop_time.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "server/loop_kernels/models.h"

namespace fusion {
namespace {

// Cycles of a multiprocessor, of 1.98 GHz on an H200. Blocks of 64 threads take 80 ns of each multiprocessor,
// whatever they do (smoothing of 2^24 and addition of 8192 square).
constexpr double kBlockCycles = 158;
// A load that comes from the first cache or shared memory, from the second cache or from device memory, an
// addition, and a barrier of a block. L. Zhe et al., "Dissecting the NVIDIA Hopper Architecture through
// Microbenchmarking and Multiple Level Analysis" (2025), has 33 to 41 and about 260; vectors of 2^24 entries
// added with few threads take 0.5 us for each load.
constexpr double kNearCycles = 33, kFarCycles = 260, kMemoryCycles = 1000, kAdditionCycles = 4,
                 kBarrierCycles = 30;
// A block from its launch to its first load, and from its last one to the launch of the next block; and what
// a warp takes for an instruction while it has no other to wait for.
constexpr double kStartCycles = 500, kWarpStartCycles = 8, kIssueCycles = 5;
// The second cache takes stores at this share of the rate of copies: 16.8 million of single entries, of two or
// of four take 285, 134 and 61 us (transpose of 4096 square).
constexpr double kShareOfStores = 0.5;
// Instructions of an iteration whose parts take turns.
constexpr double kUnevenInstructions = 5;
// A multiprocessor alone gets this much more than its share of the memory's rate.
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
  const double own =
      loads + cycle * (work.additions * kAdditionCycles + work.barriers * kBarrierCycles +
                       work.instructions * kIssueCycles);
  const double ahead =
      cycle * (work.ahead_waits * kFarCycles + work.ahead_memory_waits * (kMemoryCycles - kFarCycles));
  const double uneven = work.uneven_waits * loads / std::max(work.waits, 1.0) +
                        work.uneven_additions * cycle *
                            (kAdditionCycles + kUnevenInstructions * kIssueCycles);
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
