// Brings reports to the disk: one thread, which takes all that has come while the disk was busy.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "db/store/tuning_store.h"
#include "server/tuner/tuner_metrics.h"

namespace fusion {

// Thread safe.
class TuningCommitter {
 public:
  // The thread of the committer calls this when the batches and the progress are on the disk; it must not
  // block.
  using Committed = std::function<void(const std::vector<TuningBatch>& batches,
                                       const std::vector<TuningProgressUpdate>& progress)>;

  // The store and the metrics (null: none) outlive it.
  TuningCommitter(TuningStore& store, Committed committed, TunerMetrics* metrics);
  // Calls Stop().
  ~TuningCommitter();

  // Batches of one process are added in the order of their sequences.
  void Add(TuningBatch batch);
  // The newest progress of a tuning counts; points of convergence of its generation are added up.
  void SetProgress(TuningProgressUpdate update);
  // True: everything that came before is on the disk. False: it is not within `limit`.
  bool Flush(std::chrono::milliseconds limit);
  // Tries once more to write what waits; what comes later is never written.
  void Stop();

 private:
  struct Group {
    std::vector<TuningBatch> batches;
    std::map<int64_t, TuningProgressUpdate> progress;
    bool empty() const { return batches.empty() && progress.empty(); }
  };
  void Run();
  // A group that cannot be written is tried again until it can, or the committer stops.
  void Commit(Group group, bool last);

  TuningStore& store_;
  const Committed committed_;
  TunerMetrics* const metrics_;

  std::mutex mutex_;
  std::condition_variable changed_;
  Group waiting_;              // guarded by mutex_
  uint64_t added_ = 0;         // guarded by mutex_; calls of Add and SetProgress
  uint64_t committed_to_ = 0;  // guarded by mutex_; of these, on the disk
  int flushing_ = 0;           // guarded by mutex_; calls of Flush that wait
  bool stopping_ = false;      // guarded by mutex_
  std::thread thread_;
};

}  // namespace fusion
