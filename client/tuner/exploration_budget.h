// The budget is what exploring may cost in one section of one process once something good is known.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>

namespace fusion::tuning {

// Runs pay in a share of what they take; an explored run takes out what it took beyond what a run with the
// choice takes at that time, or gives back what it took less. So noise counts on both sides: where all runs
// take twice as long as was expected, exploring costs nothing for that. One explored run at a time, and only
// while the budget holds what it is expected to take. At any moment
//   sum of excesses <= share * sum of values + the excess of one run
// with those that were explored before anything good was known. Values are those of the objective, seconds
// for one. Thread safe; nothing waits.
class ExplorationBudget {
 public:
  // No explored run is expected to cost less than this share of the best.
  static constexpr double kLeastExcess = 1.0 / 32;
  // A budget that was saved for days is not spent at a stretch: it holds at most the cost of so many runs of
  // the best.
  static constexpr double kMostRuns = 64;

  // Pays in a share of what runs took.
  void PayIn(double amount, double best) {
    best = Bounded(best);
    const double most = std::max(kMostRuns * best, 4 * Expected(best));
    Change([&](double budget) { return std::min(budget + Bounded(amount), std::max(budget, most)); });
  }
  // Takes out, before the first run, what exploring cost earlier beyond its share.
  void Owe(double amount) {
    Change([&](double budget) { return budget - Bounded(amount); });
  }

  // Runs with the choice took so many times what was expected of them.
  void Ran(double times_expected) {
    const double pace = pace_.load(std::memory_order_relaxed);
    pace_.store(pace + (std::min(times_expected, kMostPace) - pace) / 8, std::memory_order_relaxed);
  }
  // Returns what a run with the choice takes now, where `best` is expected of it.
  double Usual(double best) const { return Bounded(best * pace_.load(std::memory_order_relaxed)); }

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
    Explored(excess);
    exploring_.store(false, std::memory_order_release);
  }
  void Cancelled() { exploring_.store(false, std::memory_order_release); }

  // A run that was explored without a limit. It is paid for later.
  void Explored(double excess) {
    excess = Bounded(excess);
    const double mean = mean_excess_.load(std::memory_order_relaxed);
    const double deviation = deviation_.load(std::memory_order_relaxed);
    mean_excess_.store(mean + (excess - mean) / 8, std::memory_order_relaxed);
    deviation_.store(deviation + (std::abs(excess - mean) - deviation) / 8, std::memory_order_relaxed);
    Owe(excess);
  }

 private:
  // Sums of values near the greatest number stay numbers.
  static constexpr double kGreatest = 1e300;
  // A mean still comes back when one of its values was near this.
  static constexpr double kMostPace = 1e6;
  static double Bounded(double value) { return std::clamp(value, -kGreatest, kGreatest); }

  template <typename To>
  void Change(To to) {
    double budget = budget_.load(std::memory_order_relaxed);
    while (!budget_.compare_exchange_weak(budget, Bounded(to(budget)), std::memory_order_relaxed)) {
    }
  }
  double Expected(double best) const {
    // A run may cost more than others do: where runs are noisy, the budget is kept ahead of that.
    return std::max(mean_excess_.load(std::memory_order_relaxed) + deviation_.load(std::memory_order_relaxed),
                    kLeastExcess * Bounded(best));
  }
  bool Covers(double best) const { return budget_.load(std::memory_order_relaxed) >= Expected(best); }

  std::atomic<double> budget_{0};
  // Moving means over about eight runs: what was tried first tells little of what is tried later.
  std::atomic<double> mean_excess_{0}, deviation_{0};
  std::atomic<double> pace_{1};
  std::atomic<bool> exploring_{false};
};

}  // namespace fusion::tuning
