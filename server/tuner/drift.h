// Whether what was chosen still behaves as when it was chosen.
#pragma once

#include <algorithm>
#include <cstdint>

namespace fusion {

// Page's cumulative sums ("Continuous inspection schemes", 1954) of the logarithms of values, upwards and downwards. With changes of
// up to one standard deviation of single runs, or 3 %, let pass, and an alarm at eight, a false alarm comes once in millions of runs; a
// change of 20 % at 5 % noise is noticed after three.
class DriftDetector {
 public:
  void Clear() { watching_ = false; }
  bool watching() const { return watching_; }

  // What runs are compared with from now on: the logarithm of their mean, and how many there were. Too few: nothing is watched.
  void Watch(double cost, uint64_t count, double noise) {
    watching_ = count >= kLeastRuns;
    expected_ = cost;
    unit_ = std::max(noise, kLeastNoise);
    up_ = down_ = 0;
  }

  // Runs and the logarithm of their mean. True: they are not what they were.
  bool Add(double cost, uint64_t count) {
    if (!watching_) return false;
    const double weight = static_cast<double>(std::min(count, kMostTogether));
    up_ = std::max(0.0, up_ + weight * (cost - expected_ - unit_));
    down_ = std::max(0.0, down_ + weight * (expected_ - cost - unit_));
    return std::max(up_, down_) > kAlarm * unit_;
  }

 private:
  static constexpr uint64_t kLeastRuns = 8;
  static constexpr double kLeastNoise = 0.03;
  static constexpr double kAlarm = 8;
  // What is reported together ran together, and was disturbed together.
  static constexpr uint64_t kMostTogether = 4;

  bool watching_ = false;
  double expected_ = 0, unit_ = 0, up_ = 0, down_ = 0;
};

}  // namespace fusion
