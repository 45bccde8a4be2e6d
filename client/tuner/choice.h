// A choice is what is known of a section at a moment, as the threads see it that run the section.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "client/tuner/fusion_tuner.h"

namespace fusion::tuning {

// Values for all parameters of a section. Immutable, and lives as long as the section.
struct Configuration {
  std::vector<double> point;               // as on the wire
  std::vector<fusion_tuner_value> values;  // as the program gets them
};

struct Choice {
  uint64_t generation = 0;
  const Configuration* best = nullptr;
  double expected = 0;  // value of the best; 0: not known
  double share = 0;     // that exploring may cost where it is limited
  bool limited = false;
  bool converged = false;
};

// The newest choice: written by one thread, read by any without waiting. A reader that meets the writer keeps
// what it had.
class PublishedChoice {
 public:
  void Write(const Choice& choice) {
    const uint64_t version = version_.load(std::memory_order_relaxed);
    version_.exchange(version + 1, std::memory_order_acq_rel);  // odd: the fields are changing
    generation_.store(choice.generation, std::memory_order_release);
    best_.store(choice.best, std::memory_order_release);
    expected_.store(choice.expected, std::memory_order_release);
    share_.store(choice.share, std::memory_order_release);
    flags_.store(choice.limited | choice.converged << 1, std::memory_order_release);
    version_.store(version + 2, std::memory_order_release);
  }

  // `version` is that of `choice`, 0 before the first. True: both are newer now.
  bool ReadNewer(uint64_t* version, Choice* choice) const {
    const uint64_t before = version_.load(std::memory_order_acquire);
    if (before == *version || before % 2 != 0) return false;
    Choice read;
    read.generation = generation_.load(std::memory_order_acquire);
    read.best = best_.load(std::memory_order_acquire);
    read.expected = expected_.load(std::memory_order_acquire);
    read.share = share_.load(std::memory_order_acquire);
    const int flags = flags_.load(std::memory_order_acquire);
    if (version_.load(std::memory_order_relaxed) != before) return false;
    read.limited = flags & 1;
    read.converged = flags & 2;
    *version = before;
    *choice = read;
    return true;
  }

 private:
  std::atomic<uint64_t> version_{0};
  std::atomic<uint64_t> generation_{0};
  std::atomic<const Configuration*> best_{nullptr};
  std::atomic<double> expected_{0};
  std::atomic<double> share_{0};
  std::atomic<int> flags_{0};
};

}  // namespace fusion::tuning
