#include "server/tuner/run_statistics.h"

#include <algorithm>
#include <cmath>

namespace fusion {
namespace {

// The noise before anything was measured twice, and how many measurements that counts as.
constexpr double kUsualNoise = 0.05;
constexpr double kUsualNoiseFreedom = 2;
// For a configuration's own noise, that of all counts as so many measurements.
constexpr double kAsOthers = 8;
constexpr uint64_t kOftenEnough = 6;
// Degrees of freedom that one configuration may bring in: one that ran a million times says nothing of the
// others.
constexpr double kMostFreedom = 30;
constexpr uint64_t kMostIndependent = 1000;
constexpr uint64_t kMostRuns = uint64_t{1} << 53;  // runs that are counted
// Relative errors by which a configuration counts as worse than its mean.
constexpr double kDoubtOfOne = 2.5, kDoubt = 0.75;

double Freedom(const RunStatistics& runs) {
  return runs.count < 2 ? 0 : std::min(static_cast<double>(runs.count - 1), kMostFreedom);
}
double Sum(const RunStatistics& runs) {
  return runs.count < 2 ? 0 : runs.relative_squares / static_cast<double>(runs.count - 1) * Freedom(runs);
}
// Positive numbers cannot deviate more.
double Possible(double relative_squares, uint64_t count) {
  return std::min(relative_squares, static_cast<double>(count) * static_cast<double>(count));
}

}  // namespace

RunStatistics::RunStatistics(uint64_t count, double mean, double squared_deviations, double minimum,
                             uint64_t failures)
    : count(count), failures(failures) {
  if (count == 0) return;
  this->mean = mean;
  this->minimum = minimum;
  const double deviation = std::sqrt(squared_deviations) / mean;
  relative_squares = Possible(deviation * deviation, count);
}

void RunStatistics::Add(const RunStatistics& more) {
  failures += more.failures;
  if (more.count == 0) return;
  const auto before = static_cast<double>(count), added = static_cast<double>(more.count);
  const double all = before + added, old_mean = mean;
  minimum = std::min(minimum, more.minimum);
  // Not below the smallest, where one mean is nothing beside the other.
  mean = std::max(minimum, old_mean + (more.mean - old_mean) * (added / all));
  const auto square = [&](double value) { return (value / mean) * (value / mean); };
  relative_squares = relative_squares * square(old_mean) + more.relative_squares * square(more.mean) +
                     square(more.mean - old_mean) * (before * (added / all));
  count = std::min(count, kMostRuns) + std::min(more.count, kMostRuns);
  relative_squares = Possible(relative_squares, count);
}

double RunStatistics::squared_deviations() const {
  const double deviation = std::sqrt(relative_squares) * mean;
  return std::min(deviation * deviation, std::numeric_limits<double>::max());
}

double RunStatistics::Cost(bool maximize) const {
  if (!works()) return std::numeric_limits<double>::infinity();
  return maximize ? -std::log(mean) : std::log(mean);
}

void RunNoise::Add(const RunStatistics& runs) {
  sum_ += Sum(runs);
  freedom_ += Freedom(runs);
}

void RunNoise::Remove(const RunStatistics& runs) {
  sum_ = std::max(0.0, sum_ - Sum(runs));
  freedom_ -= Freedom(runs);
}

double RunNoise::all() const {
  return std::sqrt((kUsualNoiseFreedom * kUsualNoise * kUsualNoise + sum_) / (kUsualNoiseFreedom + freedom_));
}

double RunNoise::Of(const RunStatistics& runs) const {
  const double noise = all();
  if (runs.count < kOftenEnough) return noise;
  const double freedom = static_cast<double>(runs.count - 1);
  return std::sqrt((runs.relative_squares + kAsOthers * noise * noise) / (freedom + kAsOthers));
}

double RunNoise::RelativeError(const RunStatistics& runs) const {
  return Of(runs) / std::sqrt(static_cast<double>(std::clamp<uint64_t>(runs.count, 1, kMostIndependent)));
}

double RunNoise::Believed(const RunStatistics& runs, bool maximize) const {
  const double cost = runs.Cost(maximize);
  return std::isfinite(cost) ? cost + (runs.count == 1 ? kDoubtOfOne : kDoubt) * RelativeError(runs) : cost;
}

double RunNoise::Expected(const RunStatistics& runs, bool maximize) const {
  if (!runs.works()) return 0;
  const double believed = Believed(runs, maximize);
  return std::min(std::exp(maximize ? -believed : believed), std::numeric_limits<double>::max());
}

}  // namespace fusion
