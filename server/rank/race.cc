#include "server/rank/race.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace fusion {
namespace {

double MedianOfSorted(const std::vector<double>& values) {
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::vector<RaceCandidate> WithTimes(const std::vector<double>& predicted_seconds) {
  std::vector<RaceCandidate> candidates;
  for (double seconds : predicted_seconds) candidates.push_back({.predicted_seconds = seconds});
  return candidates;
}

}  // namespace

Race::Race(const std::vector<RaceCandidate>& candidates, RaceOptions options)
    : candidates_(candidates), options_(options), left_(candidates_.size()), best_(options.best_seconds) {
  for (size_t i = 0; i < candidates_.size(); ++i) {
    if (candidates_[i].deviation <= 0) candidates_[i].deviation = options_.deviation;
    if (candidates_[i].group < 0) candidates_[i].group = -1 - static_cast<int>(i);
  }
  std::iota(left_.begin(), left_.end(), 0);
  std::stable_sort(left_.begin(), left_.end(), [&](int a, int b) { return Bound(a) < Bound(b); });
}

Race::Race(const std::vector<double>& predicted_seconds, RaceOptions options)
    : Race(WithTimes(predicted_seconds), options) {}

double Race::Deviation() const {
  if (errors_.size() < 3) return options_.deviation;
  std::vector<double> distances;
  const double median = MedianOfSorted(errors_);
  for (double error : errors_) distances.push_back(std::abs(error - median));
  std::sort(distances.begin(), distances.end());
  // The standard deviation of a normal distribution over the median distance from its median.
  constexpr double kNormal = 1.4826;
  return std::max(options_.deviation, kNormal * MedianOfSorted(distances));
}

double Race::LowerBound(double predicted_seconds, double deviation) const {
  const double common = errors_.empty() ? 0 : MedianOfSorted(errors_);
  // Where predictions prove worse than they were thought to be, all are taken to be worse.
  const double worse = options_.deviation > 0 ? Deviation() / options_.deviation : 1;
  return std::max(options_.floor_seconds, predicted_seconds * std::exp(common - 2 * deviation * worse));
}

double Race::Bound(int position) const {
  return LowerBound(candidates_[position].predicted_seconds, candidates_[position].deviation);
}

std::vector<int>::iterator Race::First() {
  return std::min_element(left_.begin(), left_.end(), [&](int a, int b) { return Bound(a) < Bound(b); });
}

std::vector<int>::iterator Race::Choose() {
  const int before = static_cast<int>(candidates_.size() - left_.size());
  if (left_.empty() || before >= options_.most) return left_.end();
  if (options_.all) return left_.begin();
  if (before < options_.least) {
    const auto next = std::find_if(left_.begin(), left_.end(), [&](int position) {
      return given_of_group_[candidates_[position].group] < kOfGroup;
    });
    return next != left_.end() ? next : First();
  }
  const auto next = First();
  if (std::isfinite(best_) && Bound(*next) >= best_) return left_.end();
  return next;
}

std::vector<int> Race::Next() {
  std::vector<int> round;
  for (auto next = Choose(); next != left_.end(); next = Choose()) {
    round.push_back(*next);
    ++given_of_group_[candidates_[*next].group];
    left_.erase(next);
    if (static_cast<int>(round.size()) == options_.round && !options_.all) break;
  }
  return round;
}

void Race::Ended(int position, double measured_seconds, bool steady) {
  if (measured_seconds <= 0) return;
  ++timed_;
  best_ = std::min(best_, measured_seconds);
  const double error = std::log(measured_seconds / candidates_[position].predicted_seconds);
  if (steady && std::isfinite(error))
    errors_.insert(std::upper_bound(errors_.begin(), errors_.end(), error), error);
}

double Race::LeastLeft() const {
  double least = std::numeric_limits<double>::infinity();
  for (int position : left_) least = std::min(least, Bound(position));
  if (std::isfinite(options_.unseen_seconds))
    least = std::min(least, LowerBound(options_.unseen_seconds, options_.deviation));
  return least;
}

double Race::PossibleGain() const {
  if (!std::isfinite(best_)) return 1;
  return std::clamp(1 - LeastLeft() / best_, 0.0, 1.0);
}

}  // namespace fusion
