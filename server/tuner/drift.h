// The detector tells whether the chosen configuration still behaves as when it was chosen.
#pragma once

#include <algorithm>
#include <cstdint>

namespace fusion {

// Page's cumulative sums ("Continuous inspection schemes", 1954) of the logarithms of values, upwards and
// downwards. Changes of up to a unit pass: 1.3 standard deviations of single runs, which are known badly, or
// 3 %; the alarm is at ten. A false one comes once in millions of runs; a change of 20 % at 5 % noise is
// noticed after five.
class DriftDetector {
 public:
  void Clear() { watching_ = false; }
  bool watching() const { return watching_; }

  // Compares runs from now on with `count` earlier ones, of which `cost` is the logarithm of the mean. If
  // these are too few, nothing is watched.
  void Watch(double cost, uint64_t count, double noise) {
    watching_ = count >= kLeastRuns;
    expected_ = cost;
    known_ = 0.5 * static_cast<double>(std::min(count, kLearned));
    unit_ = std::max(1.3 * noise, kLeastUnit);
    up_ = down_ = 0;
  }

  // Adds `count` runs, of which `cost` is the logarithm of the mean. True: the runs are not what they were.
  bool Add(double cost, uint64_t count) {
    if (!watching_) return false;
    const double weight = static_cast<double>(std::min(count, kMostTogether));
    up_ = std::max(0.0, up_ + weight * (cost - expected_ - unit_));
    down_ = std::max(0.0, down_ + weight * (expected_ - cost - unit_));
    // The chosen configuration was lucky in the runs for which it was chosen: later runs correct what is
    // expected, until there are enough.
    if (known_ < static_cast<double>(kLearned)) {
      known_ += weight;
      expected_ += (cost - expected_) * weight / known_;
    }
    return std::max(up_, down_) > kAlarm * unit_;
  }

 private:
  static constexpr uint64_t kLeastRuns = 8;
  static constexpr uint64_t kLearned = 50;
  static constexpr double kLeastUnit = 0.03;
  static constexpr double kAlarm = 10;
  // Runs that are reported together ran together, and were disturbed together.
  static constexpr uint64_t kMostTogether = 4;

  bool watching_ = false;
  double expected_ = 0, known_ = 0, unit_ = 0, up_ = 0, down_ = 0;
};

}  // namespace fusion
