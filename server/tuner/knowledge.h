// A search keeps here what it has measured: the configurations and their statistics. Strategies read it.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "server/tuner/parameter_space.h"
#include "server/tuner/run_statistics.h"

namespace fusion {

// A configuration that was run.
struct TuningArm {
  TuningPoint point;
  std::vector<double> units;  // ParameterSpace::ToUnit
  RunStatistics runs;
  // RunStatistics::Cost
  double cost = std::numeric_limits<double>::infinity();
  bool works() const { return runs.works(); }
};

// Not thread safe.
class TuningKnowledge {
 public:
  TuningKnowledge(std::shared_ptr<const ParameterSpace> space, uint64_t seed);

  const ParameterSpace& space() const { return *space_; }
  const std::vector<TuningArm>& arms() const { return arms_; }
  // Returns the index of the arm; -1: the point was not run.
  int64_t Find(const TuningPoint& point) const;
  // The arm with the lowest cost; -1: none works.
  int64_t lowest() const {
    return by_cost_.empty() || !arms_[by_cost_.begin()->second].works()
               ? -1
               : static_cast<int64_t>(by_cost_.begin()->second);
  }
  // The arm that is believed to be the best (RunNoise::Believed); -1: none works.
  int64_t best() const;
  // At most kTop arms, the lowest cost first.
  std::vector<size_t> top() const;
  static constexpr size_t kTop = 32;
  const RunNoise& noise() const { return noise_; }

  // Adds one or many runs of a canonical point and returns the index of the arm. -1: there is no room for
  // another arm, and this one is not better than all.
  int64_t Add(const TuningPoint& point, uint64_t count, double mean, double squared_deviations,
              double minimum, uint64_t failures);
  void Clear();

  // Runs that are outstanding, by configuration.
  bool IsOutstanding(const TuningPoint& point) const { return outstanding_.contains(point); }
  const absl::flat_hash_map<TuningPoint, int>& outstanding() const { return outstanding_; }
  void AddOutstanding(const TuningPoint& point) { ++outstanding_[point]; }
  void RemoveOutstanding(const TuningPoint& point);

  std::mt19937_64& random() { return random_; }
  double Uniform() { return std::uniform_real_distribution<double>(0, 1)(random_); }
  double Normal() { return std::normal_distribution<double>(0, 1)(random_); }
  // Returns a random point that satisfies the constraints, all values alike; the defaults where none is
  // found.
  TuningPoint RandomPoint();

  static constexpr size_t kMostArms = 100'000;

 private:
  std::shared_ptr<const ParameterSpace> space_;
  std::mt19937_64 random_;
  std::vector<TuningArm> arms_;
  absl::flat_hash_map<TuningPoint, size_t> index_;
  absl::flat_hash_map<TuningPoint, int> outstanding_;
  std::set<std::pair<double, size_t>> by_cost_;
  bool maximize_ = false;
  RunNoise noise_;
};

}  // namespace fusion
