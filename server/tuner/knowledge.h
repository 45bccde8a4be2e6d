// What a search has measured: the configurations and their statistics. Strategies read it.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "server/tuner/parameter_space.h"

namespace fusion {

// A configuration that was run.
struct TuningArm {
  TuningPoint point;
  std::vector<double> units;  // ParameterSpace::ToUnit
  uint64_t count = 0;         // of runs that succeeded
  double mean = 0;            // of their values
  double squared_deviations = 0;
  double minimum = std::numeric_limits<double>::infinity();
  uint64_t failures = 0;
  // Lower is better: the logarithm of the mean, or its negative where the objective is maximised; +infinity
  // where runs only failed. Differences of it are relative differences.
  double cost = std::numeric_limits<double>::infinity();
  // Runs in a row with the same values are noisy together; no more than this many count as independent.
  static constexpr uint64_t kMostIndependent = 1000;
  double independent() const { return static_cast<double>(std::min(count, kMostIndependent)); }
  bool works() const { return count > 0 && failures <= count; }
};

// Not thread safe.
class TuningKnowledge {
 public:
  TuningKnowledge(std::shared_ptr<const ParameterSpace> space, uint64_t seed);

  const ParameterSpace& space() const { return *space_; }
  const std::vector<TuningArm>& arms() const { return arms_; }
  // -1: it was not run.
  int64_t Find(const TuningPoint& point) const;
  // The one with the lowest cost; -1: none works.
  int64_t lowest() const {
    return top_.empty() || !arms_[top_[0]].works() ? -1 : static_cast<int64_t>(top_[0]);
  }
  // At most kTop arms, the lowest cost first; none that is not here has a lower cost than the first.
  const std::vector<size_t>& top() const { return top_; }
  static constexpr size_t kTop = 32;
  // Standard deviation of single runs over their mean, over all configurations that ran twice; a guess where
  // there are few.
  double noise() const;

  // The same of one arm: its own where it ran often; some configurations are noisier than others.
  double noise(const TuningArm& arm) const;

  // Adds runs of a canonical point, or of many; the index of the arm. -1: there is no room for another arm,
  // and this one is not better than all.
  int64_t Add(const TuningPoint& point, uint64_t count, double mean, double squared_deviations,
              double minimum, uint64_t failures);
  void Clear();

  // Runs that are out, by configuration.
  bool IsOutstanding(const TuningPoint& point) const { return outstanding_.contains(point); }
  const absl::flat_hash_map<TuningPoint, int>& outstanding() const { return outstanding_; }
  void AddOutstanding(const TuningPoint& point) { ++outstanding_[point]; }
  void RemoveOutstanding(const TuningPoint& point);

  std::mt19937_64& random() { return random_; }
  double Uniform() { return std::uniform_real_distribution<double>(0, 1)(random_); }
  double Normal() { return std::normal_distribution<double>(0, 1)(random_); }
  // A point that satisfies the constraints, all values alike; the defaults where none is found.
  TuningPoint RandomPoint();

  static constexpr size_t kMostArms = 100'000;

 private:
  std::shared_ptr<const ParameterSpace> space_;
  std::mt19937_64 random_;
  std::vector<TuningArm> arms_;
  absl::flat_hash_map<TuningPoint, size_t> index_;
  absl::flat_hash_map<TuningPoint, int> outstanding_;
  void KeepTop(size_t changed);

  std::vector<size_t> top_;                                  // sorted by cost
  double others_ = std::numeric_limits<double>::infinity();  // no arm outside top_ has a lower cost than this
  bool maximize_ = false;
  // Over arms with several runs: sum of squared relative deviations, and of their degrees of freedom.
  double noise_sum_ = 0, noise_freedom_ = 0;
};

}  // namespace fusion
