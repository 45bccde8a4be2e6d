// The cost model: bytes over measured bandwidth, arithmetic over peak, occupancy, launch overhead; corrected
// by what was measured (residual.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "server/model/kernel_memory.h"
#include "server/model/residual.h"
#include "server/model/routine_tables.h"
#include "server/plan/plan.h"
#include "server/target/target.h"

namespace fusion {

// The routines of a kernel take so long for all of its tiles, by their tables (Fousek 2010, equation 4.4).
struct RoutineSeconds {
  double memory = 0;      // loads and stores, while as many blocks as fit are at them
  double compute = 0;     // computation, likewise
  double alone = 0;       // all one after the other, with a single block on each multiprocessor
  bool extended = false;  // see RoutineTime
};

// The work and the needs of a kernel, at the sizes of the submission.
struct KernelTraits {
  double bytes_read = 0;
  double bytes_written = 0;
  double flops = 0;
  double instructions = 0;  // of all threads, estimated; 0: not known
  int launches = 1;
  int threads = 128;           // per block
  int64_t blocks = 1;          // of the grid
  int registers = 32;          // per thread, estimated
  int64_t shared_bytes = 0;    // per block
  double cache_bytes = 0;      // read from the L2 cache, beside what comes from device memory through it
  double scattered_bytes = 0;  // written to the L2 cache by stores of single entries, up to 32 for each
  double bytes_in_flight_per_block = 0;  // loads that the block has under way at once
  // The time of loads that wait for each other or go entry by entry; overlaps badly with the memory's own.
  double latency_seconds = 0;
  double access_efficiency = 1;  // share of the bytes moved that is asked for (strided accesses fetch more)
  double barrier_seconds = 0;    // time that all blocks wait for each other or for code, not overlapped
  // The time that blocks wait in each of their turns, for their loads and between phases; it overlaps badly
  // with the rest.
  double waiting_seconds = 0;
  bool phases_apart = false;  // barriers between phases keep a block from loading while it computes
  // The overlap of instructions with others that wait for memory: 1: none; larger: better; 0: entire.
  double issue_overlap = 0;
  double compute_efficiency = 1;           // share of the peak that the routine reaches when alone
  std::optional<RoutineSeconds> routines;  // where they were measured, in the place of bytes and operations
  std::string missing_routine;             // see RunTimeEstimate
};

// Blocks of a kernel that fit a multiprocessor at once; 0 when not even one does.
int ResidentBlocks(const DeviceDescription& device, int threads, int registers, int64_t shared_bytes);

// Fousek 2010, equation 4.3: t = max(sum of loads and stores, sum of computes), with the share of the
// bandwidth that the occupancy permits by Little's law (bytes in flight / (bandwidth * latency)), plus what
// overlaps badly, barriers and the launches. Thread safe.
class CostModel {
 public:
  // `warm_bytes`: all data of the submission, where they are in the caches before a kernel runs, as far as
  // they fit; 0: they are not. `memory`: remembers measured kernels; null: nothing is remembered.
  explicit CostModel(DeviceDescription device, double warm_bytes = 0, Residual residual = {},
                     RoutineTables routines = {}, std::shared_ptr<const KernelMemory> memory = nullptr)
      : target_(&TargetOf(device.target())),
        device_(WithDefaults(std::move(device))),
        features_(target_->Features(device_)),
        warm_bytes_(warm_bytes),
        cold_(warm_bytes <= 0),
        warm_(warm_bytes > 0 && warm_bytes <= 0.8 * device_.l2_bytes()),
        residual_(std::move(residual)),
        routines_(std::make_shared<const RoutineTables>(std::move(routines))),
        memory_(std::move(memory)) {}
  // Returns the estimate without corrections.
  RunTimeEstimate Estimate(const KernelTraits& traits) const;
  // Returns the seconds that no kernel that moves so many bytes is predicted to undercut, without
  // corrections: the best rate that is ever assumed, and a launch.
  double LeastSeconds(double bytes) const;
  // Returns the seconds that moving so many bytes takes at least, whatever was learned: at the rate of
  // copies, as fast as any was, or that of the caches, where they may hold them.
  double FloorSeconds(double bytes) const;
  // Returns the seconds that a cover takes beside its kernels: where nothing is in the caches, the first
  // accesses.
  double StartSeconds() const;
  // Applies what was learned from measurements to the estimate of a kernel with these features; it must be
  // called once. No estimate is faster than the floor of its bytes then, but for kernels that were measured
  // on a host. `measured`: what is known of the kernel's family; `variant`: the kernel's name in it.
  void Correct(const ResidualFeatures& features, RunTimeEstimate* estimate) const;
  void Correct(const FamilyTimes& measured, const std::string& variant, const ResidualFeatures& features,
               RunTimeEstimate* estimate) const;
  // Returns this model with other knowledge of what was measured.
  CostModel Taught(Residual residual, std::shared_ptr<const KernelMemory> memory) const {
    CostModel model = *this;
    model.residual_ = std::move(residual);
    model.memory_ = std::move(memory);
    return model;
  }
  // Returns whether kernels run back to back, and may find in the L2 cache what the run before left there.
  bool back_to_back() const { return !cold_; }
  double warm_bytes() const { return warm_bytes_; }  // of the constructor
  const Target& target() const { return *target_; }
  const DeviceDescription& device() const { return device_; }
  const DeviceFeatures& features() const { return features_; }
  const Residual& residual() const { return residual_; }
  const RoutineTables& routines() const { return *routines_; }
  const KernelMemory* memory() const { return memory_.get(); }

 private:
  void Multiply(double correction, double floor, RunTimeEstimate* estimate) const;

  const Target* target_;
  DeviceDescription device_;
  DeviceFeatures features_;
  double warm_bytes_;
  bool cold_, warm_;
  Residual residual_;
  std::shared_ptr<const RoutineTables> routines_;
  std::shared_ptr<const KernelMemory> memory_;
};

}  // namespace fusion
