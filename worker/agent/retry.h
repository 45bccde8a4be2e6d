// When and how to call again after the server could not be reached.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <random>
#include <stop_token>

#include "absl/status/status.h"

namespace fusion {

// The server may be back soon: away, restarting or slow; or it has too much to do for this worker.
inline bool IsTransient(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) || absl::IsInternal(status) ||
         absl::IsResourceExhausted(status);
}

// Waiting times that double from 0.1 s to 5 s, each taken at random from its upper half, so that many workers
// do not come back at the same moment. Not thread safe.
class Backoff {
 public:
  void Reset() { seconds_ = kShortest; }
  // False when stopped before the time was over.
  bool Wait(std::stop_token stop) {
    const double wait = seconds_ * std::uniform_real_distribution<double>(0.5, 1)(random_);
    seconds_ = std::min(2 * seconds_, kLongest);
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock lock(mutex);
    never.wait_for(lock, stop, std::chrono::duration<double>(wait), [] { return false; });
    return !stop.stop_requested();
  }

 private:
  static constexpr double kShortest = 0.1, kLongest = 5;
  double seconds_ = kShortest;
  std::mt19937 random_{std::random_device{}()};
};

}  // namespace fusion
