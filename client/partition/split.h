// One run of a loop, split between the device and the host's threads.
#pragma once

#include <climits>
#include <cstdint>
#include <optional>

#include "client/partition/device.h"
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

struct SplitPlan {
  int64_t device_iterations = 0;
  int chunks = 1;         // of the device's part
  int threads = INT_MAX;  // of the host, at most
  BlockShape block;
};

// Runs all iterations: the first ones on the device as the plan says, the others on the pool.
// The pool does what the device cannot; until the device has done all of its part no byte of the host's
// memory is changed for it. `device` may be null where it has nothing to do. Throws nothing.
SplitResult RunSplit(const LoopCall& call, const SplitPlan& plan, PartitionDevice* device, HostPool& pool);

}  // namespace fusion
