#include "worker/measure/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fusion {
namespace {

// Fewer samples show no common least time.
constexpr size_t kFewestUndisturbed = 5;

}  // namespace

int MedianIntervalRank(int n) {
  // The interval from the k-th smallest to the k-th largest (k from 1) misses the median with probability
  // 2 P(Binomial(n, 1/2) <= k - 1).
  double tail = 0;
  int rank = 0;
  for (int k = 1; 2 * k <= n; ++k) {
    tail += std::exp(std::lgamma(n + 1) - std::lgamma(k) - std::lgamma(n - k + 2) - n * std::log(2.0));
    if (2 * tail > 0.05) break;
    rank = k - 1;
  }
  return rank;
}

v1::Statistics ComputeStatistics(std::vector<double> samples) {
  v1::Statistics statistics;
  const int n = static_cast<int>(samples.size());
  statistics.set_samples(n);
  if (n == 0) return statistics;
  std::sort(samples.begin(), samples.end());
  const int rank = MedianIntervalRank(n);
  statistics.set_median((samples[(n - 1) / 2] + samples[n / 2]) / 2);
  statistics.set_low(samples[rank]);
  statistics.set_high(samples[n - 1 - rank]);
  return statistics;
}

v1::Statistics TimeStatistics(std::vector<double> seconds) {
  if (seconds.empty()) return ComputeStatistics({});
  std::sort(seconds.begin(), seconds.end());
  const size_t n = seconds.size();
  const double quick = seconds[n < kFewestUndisturbed ? 0 : std::max<size_t>(1, n / 32)];
  const double slow = seconds[(n - 1) * 9 / 10];
  const auto disturbed = std::upper_bound(seconds.begin(), seconds.end(), kDisturbed * quick);
  seconds.erase(disturbed, seconds.end());
  v1::Statistics statistics = ComputeStatistics(std::move(seconds));
  statistics.set_quick(quick);
  statistics.set_spread(quick > 0 ? std::max(0.0, slow / quick - 1) : 0);
  return statistics;
}

bool IsSteady(const v1::Statistics& times, size_t samples) {
  constexpr double kSteadyHalfWidth = 0.1;
  return static_cast<size_t>(times.samples()) >= std::min(samples, kFewestUndisturbed) &&
         RelativeHalfWidth(times) <= kSteadyHalfWidth;
}

double RelativeHalfWidth(const v1::Statistics& statistics) {
  if (statistics.samples() == 0 || !(statistics.median() > 0)) return std::numeric_limits<double>::infinity();
  return (statistics.high() - statistics.low()) / 2 / statistics.median();
}

double Uncertainty(const v1::Statistics& times, size_t samples) {
  return IsSteady(times, samples) ? 2 * RelativeHalfWidth(times) : times.spread();
}

v1::Statistics PairedRatio(const std::vector<double>& first, const std::vector<double>& second) {
  const v1::Statistics times = TimeStatistics(first), others = TimeStatistics(second);
  std::vector<double> all, undisturbed;
  for (size_t i = 0; i < first.size() && i < second.size(); ++i) {
    if (!(second[i] > 0)) continue;
    all.push_back(first[i] / second[i]);
    if (first[i] <= kDisturbed * times.quick() && second[i] <= kDisturbed * others.quick())
      undisturbed.push_back(all.back());
  }
  if (2 * undisturbed.size() > all.size()) return ComputeStatistics(std::move(all));
  if (undisturbed.size() >= kFewestUndisturbed) return ComputeStatistics(std::move(undisturbed));
  v1::Statistics ratio = ComputeStatistics({});
  if (all.empty() || !(others.low() > 0)) return ratio;
  ratio.set_samples(static_cast<int>(all.size()));
  ratio.set_median(times.median() / others.median());
  ratio.set_low(times.low() / others.high());
  ratio.set_high(times.high() / others.low());
  return ratio;
}

v1::Statistics PairedRatioByRound(const std::map<int, double>& first, const std::map<int, double>& second) {
  std::vector<double> slow, fast;
  for (const auto& [round, seconds] : second) {
    const auto paired = first.find(round);
    if (paired == first.end() || !(seconds > 0)) continue;
    slow.push_back(paired->second);
    fast.push_back(seconds);
  }
  return PairedRatio(slow, fast);
}

std::vector<double> Samples(const std::map<int, double>& by_round) {
  std::vector<double> samples;
  for (const auto& [round, seconds] : by_round) samples.push_back(seconds);
  return samples;
}

bool IsSteadyTime(const v1::Statistics& times, const std::map<int, double>& samples,
                  const std::set<int>& waits) {
  size_t undisturbed = 0, waited = 0;
  for (const auto& [round, seconds] : samples) {
    if (seconds > kDisturbed * times.quick()) continue;
    ++undisturbed;
    waited += waits.count(round);
  }
  return IsSteady(times, samples.size()) && 2 * waited <= undisturbed;
}

}  // namespace fusion
