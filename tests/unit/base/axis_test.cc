#include "base/plots/axis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <utility>

namespace fusion {
namespace {

auto Are(std::vector<double> ticks) { return testing::Pointwise(testing::DoubleEq(), std::move(ticks)); }

TEST(LogAxis, PutsEqualRatiosEquallyFarApart) {
  const LogAxis x(1, 100, 50, 250);
  EXPECT_DOUBLE_EQ(x.At(1), 50);
  EXPECT_DOUBLE_EQ(x.At(10), 150);
  EXPECT_DOUBLE_EQ(x.At(100), 250);
  const LogAxis y(1e-6, 1e-2, 400, 0);
  EXPECT_NEAR(y.At(1e-5), 300, 1e-9);
  EXPECT_NEAR(y.At(1e-2), 0, 1e-9);
}

TEST(LogTicks, AreFewerInMorePowersOfTen) {
  EXPECT_THAT(LogTicks(1, 10), Are({1, 1.5, 2, 3, 4, 5, 6, 8, 10}));
  EXPECT_THAT(LogTicks(0.9, 110), Are({1, 2, 5, 10, 20, 50, 100}));
  EXPECT_THAT(LogTicks(3e-6, 0.5), Are({1e-5, 1e-4, 1e-3, 1e-2, 1e-1}));
}

TEST(LogTicks, AreAtLeastTwoAndAtMostTwelveAscendingAndInRange) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> exponent(-9, 3), decades(0, 30);
  for (int trial = 0; trial < 5000; ++trial) {
    const double more = trial % 2 == 0 ? decades(random) : decades(random) / 15;
    const double low = std::pow(10, exponent(random)), high = 2.5 * low * std::pow(10, more);
    const std::vector<double> ticks = LogTicks(low, high);
    EXPECT_GE(ticks.size(), 2u) << low << " to " << high;
    EXPECT_LE(ticks.size(), 12u) << low << " to " << high;
    for (size_t i = 0; i < ticks.size(); ++i) {
      EXPECT_GE(ticks[i], low * (1 - 1e-8));
      EXPECT_LE(ticks[i], high * (1 + 1e-8));
      if (i > 0) {
        EXPECT_LT(ticks[i - 1], ticks[i]);
      }
    }
  }
}

TEST(RatioTicks, BeginAtOne) {
  EXPECT_THAT(RatioTicks(1.05), Are({1, 1.01, 1.02, 1.03, 1.04, 1.05}));
  EXPECT_THAT(RatioTicks(1.39), Are({1, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3, 1.35}));
  EXPECT_THAT(RatioTicks(2), Are({1, 1.2, 1.4, 1.6, 1.8, 2}));
  EXPECT_THAT(RatioTicks(3.3), Are({1, 1.5, 2, 3}));
  EXPECT_THAT(RatioTicks(40), Are({1, 2, 5, 10, 20}));
}

TEST(TimeLabel, ChoosesTheUnit) {
  EXPECT_EQ(TimeLabel(2e-10), "0.2 ns");
  EXPECT_EQ(TimeLabel(999e-9), "999 ns");
  EXPECT_EQ(TimeLabel(999.6e-9), "1 us");
  EXPECT_EQ(TimeLabel(1e-6), "1 us");
  EXPECT_EQ(TimeLabel(123.44e-6), "123 us");
  EXPECT_EQ(TimeLabel(1.054e-3), "1.05 ms");
  EXPECT_EQ(TimeLabel(0.2), "200 ms");
  EXPECT_EQ(TimeLabel(12), "12 s");
  for (double tick : LogTicks(1e-9, 1e3)) EXPECT_EQ(TimeLabel(tick).substr(0, 1), "1");
}

}  // namespace
}  // namespace fusion
