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

// n samples about 1, as a quiet machine has them.
std::vector<double> Quiet(int n, double deviation, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> distribution(1, deviation);
  std::vector<double> samples(n);
  for (double& sample : samples) sample = distribution(random);
  return samples;
}

TEST(TimeStatisticsTest, OnAQuietMachineTheyAreThoseOfAllSamples) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    for (int n : {2, 7, 31, 101}) {
      const std::vector<double> samples = Quiet(n, 0.01, seed);
      const v1::Statistics plain = ComputeStatistics(samples), times = TimeStatistics(samples);
      EXPECT_EQ(times.median(), plain.median());
      EXPECT_EQ(times.low(), plain.low());
      EXPECT_EQ(times.high(), plain.high());
      EXPECT_EQ(times.samples(), n);
      EXPECT_TRUE(IsSteady(times, n));
      EXPECT_LT(Uncertainty(times, n), 0.07);
    }
  }
}

TEST(TimeStatisticsTest, WhatIsDisturbedThreeHundredFoldDoesNotMoveThem) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> fold(2, 300);
  std::vector<double> samples = Quiet(8, 0.02, 1);
  while (samples.size() < 31) samples.push_back(fold(random));
  const v1::Statistics times = TimeStatistics(samples);
  EXPECT_GT(ComputeStatistics(samples).median(), 50) << "their median is no time";
  EXPECT_NEAR(times.median(), 1, 0.03);
  EXPECT_LT(times.high(), 1.1);
  EXPECT_EQ(times.samples(), 8) << "those that count";
  EXPECT_GT(times.spread(), 100);
  EXPECT_TRUE(IsSteady(times, samples.size()));
}

TEST(TimeStatisticsTest, OfTwoLevelsTheLowerOneIsTheTime) {
  std::vector<double> samples;
  for (int i = 0; i < 30; ++i) samples.push_back((i % 5 == 0 ? 1 : 1.6) + 0.001 * i);
  const v1::Statistics times = TimeStatistics(samples);
  EXPECT_NEAR(times.median(), 1, 0.03);
  EXPECT_EQ(times.samples(), 6);
  EXPECT_TRUE(IsSteady(times, samples.size()));
}

TEST(TimeStatisticsTest, OneLuckySampleDoesNotMoveThem) {
  for (int n : {7, 31, 101}) {
    std::vector<double> samples = Quiet(n - 1, 0.01, 5);
    const v1::Statistics without = TimeStatistics(samples);
    samples.push_back(0.01);
    const v1::Statistics with = TimeStatistics(samples);
    EXPECT_NEAR(with.median(), without.median(), 0.01) << n;
    EXPECT_GT(with.quick(), 0.9) << n;
    EXPECT_EQ(with.samples(), n);
  }
}

TEST(TimeStatisticsTest, WithoutACommonLeastTimeTheyAreNotSteady) {
  int steady = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> logarithm(0, std::log(300));
    std::vector<double> samples(31);
    for (double& sample : samples) sample = std::exp(logarithm(random));
    steady += IsSteady(TimeStatistics(samples), samples.size());
  }
  EXPECT_LE(steady, 4);
  const v1::Statistics two = TimeStatistics({1, 1.01, 40, 50, 60, 70, 80});
  EXPECT_FALSE(IsSteady(two, 7)) << "they are too few";
  EXPECT_GT(Uncertainty(two, 7), 10);
  EXPECT_FALSE(IsSteady(TimeStatistics({}), 0));
}

TEST(PairedRatioTest, OnAQuietMachineItIsTheMedianOfAllRatiosAlsoWhereClocksDrift) {
  std::vector<double> slow, fast;
  for (int i = 0; i < 31; ++i) {
    slow.push_back(2 + i / 31.0);
    fast.push_back(slow.back() / 2);
  }
  const v1::Statistics ratio = PairedRatio(slow, fast);
  EXPECT_EQ(ratio.samples(), 31);
  EXPECT_DOUBLE_EQ(ratio.low(), 2);
  EXPECT_DOUBLE_EQ(ratio.high(), 2);
}

TEST(PairedRatioTest, DisturbedPairsDoNotCountWhereTheyAreMost) {
  std::vector<double> slow, fast;
  for (int i = 0; i < 30; ++i) {
    slow.push_back(i % 5 < 2 ? 2 : 400);  // undisturbed in 12, both in six of these
    fast.push_back(i % 5 < 1 ? 1 : 70);
  }
  const v1::Statistics ratio = PairedRatio(slow, fast);
  EXPECT_DOUBLE_EQ(ratio.median(), 2);
  EXPECT_EQ(ratio.samples(), 6);
}

TEST(PairedRatioTest, WithoutUndisturbedPairsItIsTheRatioOfTheTimes) {
  std::vector<double> slow, fast;
  for (int i = 0; i < 30; ++i) {
    slow.push_back(i % 2 == 0 ? 2 + 0.001 * i : 400);
    fast.push_back(i % 2 == 1 ? 1 + 0.001 * i : 70);
  }
  const v1::Statistics ratio = PairedRatio(slow, fast);
  EXPECT_NEAR(ratio.median(), 2, 0.02);
  EXPECT_LT(ratio.low(), ratio.median());
  EXPECT_GT(ratio.high(), ratio.median());
  EXPECT_EQ(PairedRatio({}, {}).samples(), 0);
}

}  // namespace
}  // namespace fusion
