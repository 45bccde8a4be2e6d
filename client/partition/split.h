// One run of a loop, split between the device and the host's threads.
#pragma once

#include <cstdint>
#include <optional>

#include "client/partition/device.h"
#include "client/partition/loop_tuner.h"
#include "client/partition/pool.h"
#include "client/partition/report.h"
#include "client/partition/site.h"

namespace fusion {

// A call of a loop, or a part of one: iterations `first` .. `last - 1`.
struct LoopCall {
  const fusion_partition_site& site;
  int64_t first, last;
  void* context;
  const int64_t* facts;

  int64_t iterations() const { return last - first; }
};

struct SplitResult {
  int64_t device_iterations = 0;          // that the device has done
  std::optional<PartitionReason> reason;  // why they are fewer than was asked for
};

// Runs all iterations: the first `device_iterations` on the device, the others on the pool, as the plan says.
// The pool does what the device cannot; until the device has done all of its part no byte of the host's
// memory is changed for it. `device` may be null where it has nothing to do. Throws nothing.
SplitResult RunSplit(const LoopCall& call, int64_t device_iterations, const LoopPlan& plan,
                     PartitionDevice* device, HostPool& pool);

}  // namespace fusion
