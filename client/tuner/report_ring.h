// Ended runs report to the background thread through this ring, from one thread to one other.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>

namespace fusion::tuning {

struct Configuration;

struct Sample {
  enum class Kind : uint32_t {
    kValue,
    kFailure,
    kReturned,  // a proposal that was not tried
  };
  uint32_t section = 0;
  Kind kind = Kind::kValue;
  uint64_t proposal = 0;                         // 0: the choice in force
  const Configuration* configuration = nullptr;  // of the choice; lives as long as its section
  double value = 0;
  // For a proposal, what the run cost beyond one with the choice; NaN: not known.
  double excess = std::numeric_limits<double>::quiet_NaN();
};

// One thread calls Push, one other calls Drain. Neither waits.
class ReportRing {
 public:
  // A section of 125 ns leaves so many samples in a millisecond, which is how long the background thread
  // rests.
  static constexpr size_t kCapacity = 8192;

  ReportRing() : samples_(new Sample[kCapacity]) {}

  // False: no more than `spared` places are left, and the sample is not kept.
  bool Push(const Sample& sample, size_t spared = 0) {
    const uint64_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - seen_head_ >= kCapacity - spared) {
      seen_head_ = head_.load(std::memory_order_acquire);
      if (tail - seen_head_ >= kCapacity - spared) return false;
    }
    samples_[tail % kCapacity] = sample;
    // Sequentially consistent with the flag by which the reader says that it sleeps: either it sees the
    // sample, or the writer sees the flag.
    tail_.store(tail + 1, std::memory_order_seq_cst);
    return true;
  }

  bool empty() const {
    return tail_.load(std::memory_order_seq_cst) == head_.load(std::memory_order_relaxed);
  }

  // Calls take(sample) for everything that was there when it began; returns for how many.
  template <class Take>
  size_t Drain(Take take) {
    const uint64_t tail = tail_.load(std::memory_order_acquire);
    uint64_t head = head_.load(std::memory_order_relaxed);
    const size_t count = tail - head;
    for (; head != tail; ++head) {
      take(samples_[head % kCapacity]);
      head_.store(head + 1, std::memory_order_release);
    }
    return count;
  }

 private:
  const std::unique_ptr<Sample[]> samples_;
  alignas(64) std::atomic<uint64_t> tail_{0};
  uint64_t seen_head_ = 0;  // the writer's copy, which saves reading what the reader writes
  alignas(64) std::atomic<uint64_t> head_{0};
};

}  // namespace fusion::tuning
