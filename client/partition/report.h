// Counts of what became of the loops of a process.
#pragma once

#include <array>
#include <atomic>
#include <bitset>
#include <cstdint>
#include <map>
#include <string>

#include "client/partition/episode.h"
#include "client/partition/loop_tuner.h"
#include "client/partition/site.h"
#include "client/partition/size_class.h"
#include "client/partition/ways.h"

namespace fusion {

// Each is counted by loop. The first are why the caller runs a loop itself.
enum class PartitionReason {
  kConditions,  // the compiled code found that they do not hold
  kOverlap,     // arrays of a pair share bytes
  kBusy,        // another thread is inside
  kRanges,      // ranges of bytes that are none
  kRounding,    // the threads round in another way
  kForked,      // the threads are those of the parent
  kNoMemory,    // of the host
  kWrong,       // the check found other results than the sequential loop's, now or before
  // These are why the device's iterations were the host's.
  kUnreadable,
  kDeviceMemory,
  kFault,      // at this loop or before
  kUnbounded,  // what it reads is not known before it runs
  kNoKernel,   // that the device takes
  kCount,
};

// A loop of the program. It outlives the program's part that the loop is in, which may be unloaded.
struct LoopRecord {
  explicit LoopRecord(const fusion_partition_site& site);
  void Count(PartitionReason reason) {
    reasons[static_cast<size_t>(reason)].fetch_add(1, std::memory_order_relaxed);
  }
  void Ran(int64_t all_iterations, double all_seconds) {
    calls = calls + 1;
    iterations = iterations + static_cast<double>(all_iterations);
    seconds = seconds + all_seconds;
  }
  std::string Line() const;

  const LoopKey key;
  const uint64_t shape;               // a hash of what the compiler says of it
  const bool is_nest;                 // that has a copy in another order
  std::atomic<int64_t> reordered{0};  // how often that one ran
  std::array<std::atomic<int64_t>, static_cast<size_t>(PartitionReason::kCount)> reasons{};
  std::atomic<bool> is_off{false};  // its results were wrong
  // One thread at a time writes these fields.
  std::atomic<int64_t> calls{0};
  std::atomic<double> iterations{0}, device_iterations{0}, seconds{0};
  std::atomic<int> threads{1};  // the most that ran it
  // Not read by Line:
  Ways ways;
  EpisodeHistory episodes;            // that began with the loop
  double device_saved = 0;            // seconds
  std::bitset<kSizeClasses> classes;  // of its calls
  // An earlier process, and the tuner, have these by class.
  std::map<int, LoopPlan> learned_plans, plans;
  bool has_learned = false;  // from an earlier process

  LoopRecord* next = nullptr;
};

// The loops that were met. Any thread may call it.
class LoopRecords {
 public:
  LoopRecords() = default;
  LoopRecords(const LoopRecords&) = delete;
  LoopRecords& operator=(const LoopRecords&) = delete;
  ~LoopRecords();

  // Returns the record of the site, null where there is no memory for it. A site keeps to one object.
  LoopRecord* Of(fusion_partition_site* site);
  // Calls visit(LoopRecord&) for each loop, the last that was met first.
  template <class Visit>
  void ForEach(const Visit& visit) {
    for (LoopRecord* record = newest_; record != nullptr; record = record->next) visit(*record);
  }
  // Returns a line for each loop, the first that was met first.
  std::string Report() const;

 private:
  std::atomic<LoopRecord*> newest_{nullptr};
};

}  // namespace fusion
