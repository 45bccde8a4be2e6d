#include "worker/measure/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fusion {

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

double RelativeHalfWidth(const v1::Statistics& statistics) {
  if (statistics.samples() == 0 || !(statistics.median() > 0)) return std::numeric_limits<double>::infinity();
  return (statistics.high() - statistics.low()) / 2 / statistics.median();
}

}  // namespace fusion
