// What exploring may cost in one section of one process once something good is known.
#pragma once

#include <algorithm>
#include <atomic>

namespace fusion::tuning {

// Runs pay in a share of what they take; an explored run takes out what it took beyond the best. One explored
// run at a time, and only while the budget holds what it is expected to take. So at any moment
//   sum of excesses <= share * sum of values + the excess of one run.
// Values are those of the objective, seconds for one. Thread safe; nothing waits.
class ExplorationBudget {
 public:
  // No explored run is expected to cost less than this share of the best.
  static constexpr double kLeastExcess = 1.0 / 32;
  // A budget that was saved for days is not spent at a stretch: it holds at most the cost of so many runs of
  // the best.
  static constexpr double kMostRuns = 64;

  // A share of what runs took.
  void PayIn(double amount, double best) {
    const double most = std::max(kMostRuns * best, 4 * Expected(best));
    double budget = budget_.load(std::memory_order_relaxed);
    while (!budget_.compare_exchange_weak(budget, std::min(budget + amount, std::max(budget, most)),
                                          std::memory_order_relaxed)) {
    }
  }

  // True: the caller may explore one run, and then calls Ended or Cancelled.
  bool TryBegin(double best) {
    if (exploring_.load(std::memory_order_relaxed) || !Covers(best)) return false;
    if (exploring_.exchange(true, std::memory_order_acquire)) return false;
    // Another run may have ended in between.
    if (Covers(best)) return true;
    exploring_.store(false, std::memory_order_release);
    return false;
  }
  void Ended(double excess) {
    Learn(excess);
    double budget = budget_.load(std::memory_order_relaxed);
    while (!budget_.compare_exchange_weak(budget, budget - excess, std::memory_order_relaxed)) {
    }
    exploring_.store(false, std::memory_order_release);
  }
  void Cancelled() { exploring_.store(false, std::memory_order_release); }

  // Of runs that were explored without limit, before anything good was known.
  void Learn(double excess) {
    const double mean = mean_excess_.load(std::memory_order_relaxed);
    mean_excess_.store(mean + (excess - mean) / 8, std::memory_order_relaxed);
  }

 private:
  double Expected(double best) const {
    return std::max(mean_excess_.load(std::memory_order_relaxed), kLeastExcess * best);
  }
  bool Covers(double best) const { return budget_.load(std::memory_order_relaxed) >= Expected(best); }

  std::atomic<double> budget_{0};
  // Moving, over about eight runs: what was tried first tells little of what is tried later.
  std::atomic<double> mean_excess_{0};
  std::atomic<bool> exploring_{false};
};

}  // namespace fusion::tuning
