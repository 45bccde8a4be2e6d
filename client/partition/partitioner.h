// All partitioned loops of a process.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "client/partition/background_start.h"
#include "client/partition/device.h"
#include "client/partition/episode.h"
#include "client/partition/learned.h"
#include "client/partition/loop_work.h"
#include "client/partition/pool.h"
#include "client/partition/ranges.h"
#include "client/partition/report.h"
#include "client/partition/resident.h"
#include "client/partition/settings.h"
#include "client/partition/site.h"
#include "client/partition/split.h"
#include "client/partition/tuner_start.h"

namespace fusion {

// Any thread may call it. One thread at a time is inside: the others run their loops themselves meanwhile.
class Partitioner {
 public:
  // Devices that are not simulated are made by `make` in a thread, when one is needed.
  // make_tuner: as of TunerStart.
  explicit Partitioner(const PartitionSettings& settings,
                       BackgroundStart<PartitionDevice>::Make make = MakeCudaDevice,
                       TunerStart::Make make_tuner = nullptr);

  // These do what the functions of site.h do. A site keeps to one object.
  int Enter(fusion_partition_site* site, int64_t iterations, double work, void* context,
            const int64_t* facts) noexcept;
  int Reorders(fusion_partition_site* site, int64_t iterations, double work, const int64_t* facts) noexcept;
  void Refuse(fusion_partition_site* site) noexcept;
  void Sync() noexcept;
  void Touch(const void* address, int64_t bytes, bool is_written) noexcept;

  const PartitionSettings& settings() const { return settings_; }
  // Returns a line for each loop.
  std::string Report() const { return loops_.Report(); }
  // Threads were made: a child of this process that is forked from now on runs all loops itself.
  bool HasThreads() const { return has_threads_; }
  // Called before the process ends, by any thread.
  void End();

 private:
  // inside_ is held. Returns false for a loop that the caller is to run. Throws std::bad_alloc while nothing
  // is changed.
  bool RunInside(const LoopCall& call, double work, LoopRecord& loop);
  bool RunBest(const LoopCall& call, double work, LoopRecord& loop);
  // Returns false for a loop that the caller is to run.
  bool RunSmall(const LoopCall& call);
  void RunOnThreads(LoopCall call, const LoopWork& of_loop, LoopRecord& loop) noexcept;
  // expected: seconds of threads for the call.
  bool DeviceTakesRest(const LoopCall& call, double work, double expected, LoopRecord& loop);
  bool RunPartitioned(const LoopCall& call, const LoopPlan& plan, LoopRecord& loop);
  void RunAlone(const LoopCall& call, const LoopWork& of_loop, LoopRecord& loop);
  // Returns false where the device does not run the loop: then nothing of it was run.
  bool RunResident(const LoopCall& call, double work, BlockShape block, LoopRecord& loop);
  void SawThreads(double work, double seconds, LoopRecord& loop);
  bool CopiesInEachCall(const LoopRecord& loop) const;
  bool RunPlan(const LoopCall& call, double work, const LoopPlan& plan, LoopRecord& loop);
  // Returns true when the loop has run as the tuner, or an earlier process, has it.
  bool RunTuned(const LoopCall& call, double work, Way known, LoopRecord& loop);
  void MakePool();
  Way ChooseWay(const LoopCall& call, double work, LoopRecord& loop);
  // Returns true when the device may run the call, and false, counted, when not.
  bool DeviceCanRun(const LoopCall& call, LoopRecord& loop);
  // The device's share by the settings.
  double DeviceShare() const;
  // Returns true when the device may be a way of its own for the call.
  bool DeviceIsWay(const LoopCall& call) const;
  bool HasDevice();
  // Returns how many seconds the device saves, apart from copies.
  double DeviceSaves(double work, const LoopRecord& loop) const;
  // The device, or the tuner, may begin, which takes so long at most.
  bool HasEarned(double seconds) const;
  void Learn(double work, LoopRecord& loop);
  void NoteLearned();
  bool DeviceIsFaster(double work, const LoopRecord& loop) const;
  void FindDevice(const fusion_partition_site& site, bool is_wanted);
  static std::unique_ptr<PartitionDevice> MakeCudaDevice();

  // Returns false where another thread is inside, or this one already.
  bool GoInside();
  void GoOutside();
  bool IsResident() const { return resident_ != nullptr && !resident_->empty(); }
  // The calling thread's loops have to be followed by Sync, from now on.
  void OpenEpisode(LoopRecord& loop);
  // It stores what loops have written; the episode goes on.
  void StoreResident();
  void CloseEpisode();
  template <class Condition>
  void CloseIf(const Condition& must_close) noexcept;

  const PartitionSettings settings_;
  LoopRecords loops_;
  std::atomic<bool> has_threads_{false};
  std::atomic<const void*> inside_{nullptr};  // the thread that is; null: none
  BackgroundStart<PartitionDevice> start_;
  // The thread whose episode is open; null: there is none.
  std::atomic<const void*> owner_{nullptr};

  TunerStart tuner_start_;
  Learned learned_;

  // The thread that is inside uses these fields.
  const BackgroundStart<PartitionDevice>::Make make_;
  std::unique_ptr<PartitionDevice> device_;  // null: there is none, or not yet
  std::unique_ptr<HostPool> pool_;           // made when it is first needed
  std::unique_ptr<ResidentArrays> resident_;
  LoopRanges whole_;
  Episode episode_;
  // Since the last loop that was worth a call.
  int small_loops_ = 0, touches_ = 0;
  LoopRecord* first_of_episode_ = nullptr;
  LoopRecord* last_on_device_ = nullptr;
  double bytes_per_second_ = 12e9;  // of copies; at first rather more than memory that is not pinned has
  bool has_copied_ = false, has_no_device_ = false, has_device_begun_ = false, has_tuner_begun_ = false;
  double seconds_ = 0;  // of all loops
  // Threads and the device have saved it, less what it took to begin them, or will save it, as they did
  // before.
  double saved_seconds_ = 0;
  bool has_complained_ = false;
};

}  // namespace fusion
