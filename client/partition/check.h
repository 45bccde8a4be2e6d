// A comparison of a partitioned run with the sequential loop.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "client/partition/array_copies.h"
#include "client/partition/ranges.h"
#include "client/partition/report.h"
#include "client/partition/simulated_device.h"
#include "client/partition/split.h"

namespace fusion {

// Prepare before the partitioned run, then Agrees; where it does not, Restore, and the loop may run as
// written. Of an array that is not written whole only bytes that the sequential loop changes are compared and
// restored: the others may be another thread's.
class SequentialCheck {
 public:
  // `whole` holds the ranges of all iterations. It and the call live as long as this object.
  SequentialCheck(const LoopCall& call, const LoopRanges& whole)
      : call_(call), whole_(whole), memory_(SimulatedDeviceSettings()), copies_(memory_) {}

  // Copies what the loop touches. Returns why that cannot be. Throws std::bad_alloc.
  std::optional<PartitionReason> Prepare();
  // Runs the loop on the copies and compares bits.
  bool Agrees();
  void Restore();

 private:
  // Calls visit(host byte, what the sequential loop wrote, what was there before).
  template <class Visit>
  void ForEachWritten(const Visit& visit);
  bool ContextsAgree() const;

  const LoopCall& call_;
  const LoopRanges& whole_;
  SimulatedDevice memory_;
  ArrayCopies copies_;
  std::vector<std::unique_ptr<char[]>> before_;  // `all` of each array
  void* context_ = nullptr;
};

}  // namespace fusion
