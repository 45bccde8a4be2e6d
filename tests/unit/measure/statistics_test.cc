#include "worker/measure/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace fusion {
namespace {

TEST(MedianIntervalRankTest, AgreesWithPublishedTables) {
  // Conover, Practical Nonparametric Statistics: the ranks (from 1) of the lower end at 95 % are 1 for n
  // = 6..8, 2 for 9..11, 3 for 12..14, 4 for 15..16, 6 for 20..22, 40 for 100.
  const int n[] = {6, 8, 9, 11, 12, 14, 15, 16, 20, 22, 100};
  const int rank[] = {1, 1, 2, 2, 3, 3, 4, 4, 6, 6, 40};
  for (size_t i = 0; i < std::size(n); ++i)
    EXPECT_EQ(MedianIntervalRank(n[i]) + 1, rank[i]) << "n = " << n[i];
  for (int few = 0; few < 6; ++few) EXPECT_EQ(MedianIntervalRank(few), 0);
}

TEST(MedianIntervalRankTest, CoversAtLeast95PercentAndOneFurtherWouldNot) {
  for (int n = 6; n <= 200; ++n) {
    auto missing = [&](int rank) {
      double tail = 0;
      for (int k = 0; k <= rank; ++k)
        tail +=
            std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) - n * std::log(2.0));
      return 2 * tail;
    };
    EXPECT_LE(missing(MedianIntervalRank(n)), 0.05) << n;
    EXPECT_GT(missing(MedianIntervalRank(n) + 1), 0.05) << n;
  }
}

TEST(StatisticsTest, MedianAndRangeOfFewSamples) {
  v1::Statistics statistics = ComputeStatistics({3, 1, 2});
  EXPECT_EQ(statistics.median(), 2);
  EXPECT_EQ(statistics.low(), 1);
  EXPECT_EQ(statistics.high(), 3);
  EXPECT_EQ(statistics.samples(), 3);
  EXPECT_EQ(ComputeStatistics({4, 1, 3, 2}).median(), 2.5);
}

TEST(StatisticsTest, NoSamplesAreNoMeasurement) {
  v1::Statistics statistics = ComputeStatistics({});
  EXPECT_EQ(statistics.samples(), 0);
  EXPECT_EQ(RelativeHalfWidth(statistics), std::numeric_limits<double>::infinity());
}

TEST(StatisticsTest, IntervalIgnoresOutliers) {
  std::vector<double> samples(20);
  std::iota(samples.begin(), samples.end(), 100);
  samples[19] = 1e9;
  v1::Statistics statistics = ComputeStatistics(samples);
  EXPECT_EQ(statistics.low(), 105);
  EXPECT_EQ(statistics.high(), 114);
  EXPECT_NEAR(RelativeHalfWidth(statistics), 4.5 / 109.5, 1e-12);
}

TEST(StatisticsTest, TheIntervalHoldsTheTrueMedianOftenEnough) {
  std::mt19937 random(7);
  std::lognormal_distribution<double> distribution(0, 1);  // median 1
  int held = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    std::vector<double> samples(25);
    for (double& sample : samples) sample = distribution(random);
    v1::Statistics statistics = ComputeStatistics(samples);
    held += statistics.low() <= 1 && 1 <= statistics.high();
  }
  EXPECT_GE(held, 2000 * 0.93);
}

}  // namespace
}  // namespace fusion
