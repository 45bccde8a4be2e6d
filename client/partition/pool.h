// The threads that run partitioned loops of a process, one loop at a time.
#pragma once

#include <atomic>
#include <climits>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "client/partition/site.h"

namespace fusion {

// One thread at a time calls it, Begin and then Finish. Unlike HostThreads of client/tuner it allocates
// nothing for a loop, does with fewer threads where the system gives no more, and knows that it is gone after
// a fork.
class HostPool {
 public:
  // Makes threads so that with the calling one there are `threads`, or as many as the system gives. They
  // round as the calling thread does now, and take no signals but for faults of their own. Throws
  // std::bad_alloc.
  explicit HostPool(int threads);
  HostPool(const HostPool&) = delete;
  HostPool& operator=(const HostPool&) = delete;
  ~HostPool();

  int threads() const { return static_cast<int>(threads_.size()) + 1; }

  // This process was forked from the one whose threads they are.
  bool IsLost() const;
  // The calling thread rounds, flushes and traps as the threads do.
  bool ComputesAsHere() const;

  // Other threads begin to run iterations `first` .. `last - 1`, so many of them that with the calling one
  // there are `most_threads` at most.
  void Begin(fusion_partition_body body, void* context, int64_t first, int64_t last,
             int most_threads = INT_MAX);
  // Takes part until all iterations are done.
  void Finish();

 private:
  void RunSlices();
  void Work(size_t number);

  std::vector<std::thread> threads_;
  const int forks_;  // of the process and its parents, when the threads were made
  const unsigned rounding_;

  // Begin sets these fields while all threads wait.
  fusion_partition_body body_ = nullptr;
  void* context_ = nullptr;
  int64_t last_ = 0, slice_ = 1;

  std::atomic<int64_t> next_{0};
  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  // mutex_ guards these fields.
  int64_t round_ = 0;
  size_t taking_part_ = 0, busy_ = 0;
  bool stopping_ = false;
};

// Returns how the calling thread's floating-point unit rounds, flushes and traps, as bits that are equal
// where it does.
unsigned RoundingOfThread();

// The bits of a thread for which nothing was set.
constexpr unsigned kDefaultRounding = 0x1f80;

}  // namespace fusion
