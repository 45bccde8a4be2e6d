// Proposals at hand: filled by the background thread, each taken by one run of any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "client/tuner/fusion_tuner.h"

namespace fusion::tuning {

// Bounded queue after D. Vyukov: a slot carries the number of the turn that it is ready for. No thread waits;
// a thread that is interrupted while it copies a slot delays only the reuse of that slot.
class ProposalQueue {
 public:
  static constexpr size_t kCapacity = 64;

  explicit ProposalQueue(size_t dimensions)
      : dimensions_(dimensions), slots_(new Slot[kCapacity]), values_(kCapacity * dimensions) {
    for (size_t i = 0; i < kCapacity; ++i) slots_[i].turn.store(i, std::memory_order_relaxed);
  }

  // The answer may be out of date at once.
  bool empty() const {
    return head_.load(std::memory_order_relaxed) == tail_.load(std::memory_order_relaxed);
  }

  // One thread calls this. False: the queue is full.
  bool Push(uint64_t proposal, uint64_t generation, const fusion_tuner_value* values) {
    const uint64_t tail = tail_.load(std::memory_order_relaxed);
    Slot& slot = slots_[tail % kCapacity];
    if (slot.turn.load(std::memory_order_acquire) != tail) return false;
    slot.proposal = proposal;
    slot.generation = generation;
    for (size_t i = 0; i < dimensions_; ++i) values_[tail % kCapacity * dimensions_ + i] = values[i];
    slot.turn.store(tail + 1, std::memory_order_release);
    tail_.store(tail + 1, std::memory_order_relaxed);
    return true;
  }

  // Any thread calls this. False: the queue is empty.
  bool Pop(uint64_t* proposal, uint64_t* generation, fusion_tuner_value* values) {
    uint64_t head = head_.load(std::memory_order_relaxed);
    for (;;) {
      Slot& slot = slots_[head % kCapacity];
      const uint64_t turn = slot.turn.load(std::memory_order_acquire);
      if (turn == head + 1) {
        if (!head_.compare_exchange_weak(head, head + 1, std::memory_order_relaxed)) continue;
        *proposal = slot.proposal;
        *generation = slot.generation;
        for (size_t i = 0; i < dimensions_; ++i) values[i] = values_[head % kCapacity * dimensions_ + i];
        slot.turn.store(head + kCapacity, std::memory_order_release);
        return true;
      }
      if (turn <= head) return false;
      head = head_.load(std::memory_order_relaxed);  // another thread was faster
    }
  }

 private:
  struct Slot {
    std::atomic<uint64_t> turn{0};
    uint64_t proposal = 0;
    uint64_t generation = 0;
  };
  const size_t dimensions_;
  const std::unique_ptr<Slot[]> slots_;
  std::vector<fusion_tuner_value> values_;  // of slot i from i * dimensions_ on
  alignas(64) std::atomic<uint64_t> head_{0};
  alignas(64) std::atomic<uint64_t> tail_{0};
};

}  // namespace fusion::tuning
