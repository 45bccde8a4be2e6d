// All partitioned loops of a process.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "client/partition/device.h"
#include "client/partition/device_start.h"
#include "client/partition/pool.h"
#include "client/partition/ranges.h"
#include "client/partition/report.h"
#include "client/partition/settings.h"
#include "client/partition/site.h"
#include "client/partition/split.h"

namespace fusion {

// Any thread may call it. One thread at a time is inside: the others run their loops themselves meanwhile.
class Partitioner {
 public:
  // Devices that are not simulated are made by `make` in a thread, when one is needed.
  explicit Partitioner(const PartitionSettings& settings, DeviceStart::Make make = MakeCudaDevice);

  // These do what the functions of site.h do. A site keeps to one object.
  int Enter(fusion_partition_site* site, int64_t iterations, double work, void* context,
            const int64_t* facts) noexcept;
  void Refuse(fusion_partition_site* site) noexcept;

  const PartitionSettings& settings() const { return settings_; }
  // Returns a line for each loop.
  std::string Report() const { return loops_.Report(); }
  // Threads were made: a child of this process that is forked from now on runs all loops itself.
  bool HasThreads() const { return has_threads_; }
  // Called before the process ends.
  void End() { start_.End(); }

 private:
  // inside_ is held. Returns false for a loop that the caller is to run. Throws std::bad_alloc while nothing
  // is changed.
  bool RunInside(const LoopCall& call, double work, LoopRecord& loop);
  bool RunPartitioned(const LoopCall& call, double share, LoopRecord& loop);
  void RunAlone(const LoopCall& call, double work, LoopRecord& loop);
  void MakePool();
  Way ChooseWay(const LoopCall& call, double work, LoopRecord& loop);
  // Returns how many of the loop's iterations the device is to run, of the share that it is to have.
  int64_t DeviceIterations(const LoopCall& call, double share, LoopRecord& loop);
  // The share by the settings.
  double DeviceShare() const;
  // Returns true when the device may be faster for the call, by what has to be copied.
  bool DeviceMayWin(const LoopCall& call, double work, const LoopRecord& loop) const;
  void FindDevice(bool is_wanted);
  static std::unique_ptr<PartitionDevice> MakeCudaDevice();

  const PartitionSettings settings_;
  LoopRecords loops_;
  std::atomic<bool> has_threads_{false};
  std::atomic<bool> inside_{false};
  DeviceStart start_;

  // The thread that is inside uses these fields.
  const DeviceStart::Make make_;
  std::unique_ptr<PartitionDevice> device_;  // null: there is none, or not yet
  std::unique_ptr<HostPool> pool_;           // made when it is first needed
  LoopRanges whole_;
  double seconds_ = 0;  // of all loops
  bool has_complained_ = false;
};

}  // namespace fusion
