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

}  // namespace

Race::Race(std::vector<double> predicted_seconds, RaceOptions options)
    : predicted_(std::move(predicted_seconds)), options_(options), left_(predicted_.size()) {
  std::iota(left_.begin(), left_.end(), 0);
  std::stable_sort(left_.begin(), left_.end(), [&](int a, int b) { return predicted_[a] < predicted_[b]; });
}

double Race::Deviation() const {
  if (errors_.size() < 3) return options_.deviation;
  std::vector<double> distances;
  const double median = MedianOfSorted(errors_);
  for (double error : errors_) distances.push_back(std::abs(error - median));
  std::sort(distances.begin(), distances.end());
  constexpr double kNormal = 1.4826;  // standard deviation over the median distance from the median, of a normal distribution
  return std::max(options_.deviation, kNormal * MedianOfSorted(distances));
}

double Race::LowerBound(double predicted_seconds) const {
  const double common = errors_.empty() ? 0 : MedianOfSorted(errors_);
  return std::max(options_.floor_seconds, predicted_seconds * std::exp(common - 2 * Deviation()));
}

std::vector<int> Race::Next() {
  std::vector<int> round;
  for (int position : left_) {
    if (static_cast<int>(round.size()) == options_.round && !options_.all) break;
    const int before = static_cast<int>(predicted_.size() - left_.size() + round.size());
    if (!options_.all && before >= options_.least && !errors_.empty() && LowerBound(predicted_[position]) >= best_)
      break;  // nor any after it
    round.push_back(position);
  }
  left_.erase(left_.begin(), left_.begin() + static_cast<std::ptrdiff_t>(round.size()));
  return round;
}

void Race::Ended(int position, double measured_seconds) {
  if (measured_seconds <= 0) return;
  ++timed_;
  best_ = std::min(best_, measured_seconds);
  const double error = std::log(measured_seconds / predicted_[position]);
  if (std::isfinite(error)) errors_.insert(std::upper_bound(errors_.begin(), errors_.end(), error), error);
}

double Race::LeastLeft() const {
  const double predicted = std::min(left_.empty() ? std::numeric_limits<double>::infinity() : predicted_[left_.front()],
                                    options_.unseen_seconds);
  return std::isfinite(predicted) ? LowerBound(predicted) : predicted;
}

double Race::PossibleGain() const {
  if (!std::isfinite(best_)) return 1;
  return std::clamp(1 - LeastLeft() / best_, 0.0, 1.0);
}

}  // namespace fusion
