#include "server/tuner/run_statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace fusion {
namespace {

constexpr double kGreatest = std::numeric_limits<double>::max(),
                 kLeast = std::numeric_limits<double>::denorm_min();

RunStatistics Of(const std::vector<double>& values) {
  RunStatistics runs;
  for (const double value : values) runs.Add({1, value, 0, value, 0});
  return runs;
}

TEST(RunStatisticsTest, RunsAddUp) {
  RunStatistics runs = Of({3, 5});
  runs.Add({3, 5.1666666666666667, 23.166666666666667, 2.5, 2});  // 4, 9, 2.5
  EXPECT_EQ(runs.count, 5u);
  EXPECT_NEAR(runs.mean, 4.7, 1e-12);
  EXPECT_NEAR(runs.squared_deviations(), 1.7 * 1.7 + 0.3 * 0.3 + 0.7 * 0.7 + 4.3 * 4.3 + 2.2 * 2.2, 1e-9);
  EXPECT_EQ(runs.minimum, 2.5);
  EXPECT_EQ(runs.failures, 2u);
}

TEST(RunStatisticsTest, DeviationsAreKnownOfTheGreatestAndTheLeastValues) {
  for (const double scale : {1e-300, 1e-160, 1.0, 1e160, 1e300}) {
    const RunStatistics runs = Of({1 * scale, 1.2 * scale, 0.8 * scale, 1 * scale});
    EXPECT_NEAR(runs.mean / scale, 1, 1e-12) << scale;
    EXPECT_NEAR(runs.relative_squares, 0.08, 1e-12) << scale;
    EXPECT_NEAR(runs.Cost(false), std::log(scale), 1e-9) << scale;
  }
}

TEST(RunStatisticsTest, NothingOverflows) {
  for (const std::vector<double>& values :
       {std::vector<double>{kGreatest, kGreatest, 1}, {kLeast, kGreatest}, {1, 1e-300, kGreatest, kLeast}}) {
    RunStatistics runs = Of(values);
    for (int i = 0; i < 3; ++i) runs.Add({uint64_t{1} << 50, values[0], kGreatest, values[0], 0});
    for (int i = 0; i < 3; ++i) runs.Add({uint64_t{1} << 50, values[1], 0, values[1], 0});
    EXPECT_TRUE(std::isfinite(runs.mean) && runs.mean > 0);
    EXPECT_TRUE(std::isfinite(runs.relative_squares));
    EXPECT_TRUE(std::isfinite(runs.squared_deviations()));
    EXPECT_TRUE(std::isfinite(runs.Cost(false)));
    RunNoise noise;
    noise.Add(runs);
    for (const bool maximize : {false, true}) {
      EXPECT_TRUE(std::isfinite(noise.Believed(runs, maximize)));
      EXPECT_TRUE(std::isfinite(noise.Expected(runs, maximize)));
    }
  }
}

TEST(RunNoiseTest, WhatRanOnceCountsAsWorseThanWhatIsKnown) {
  RunNoise noise;
  const RunStatistics known = Of({1.0, 1.1, 0.9, 1.05, 0.95, 1.0, 1.1, 0.9}), lucky = Of({0.96});
  noise.Add(known);
  noise.Add(lucky);
  for (const bool maximize : {false, true}) {
    const RunStatistics once = maximize ? Of({1.04}) : lucky;
    EXPECT_LT(once.Cost(maximize), known.Cost(maximize));
    EXPECT_GT(noise.Believed(once, maximize), noise.Believed(known, maximize));
    EXPECT_EQ(maximize ? noise.Expected(once, true) < noise.Expected(known, true)
                       : noise.Expected(once, false) > noise.Expected(known, false),
              true);
  }
  // Twice as good is no luck.
  EXPECT_LT(noise.Believed(Of({0.5}), false), noise.Believed(known, false));
}

TEST(RunNoiseTest, WhatFailsIsBelievedToBeWorst) {
  RunNoise noise;
  RunStatistics fails = Of({0.1});
  fails.failures = 2;
  EXPECT_EQ(noise.Believed(fails, false), std::numeric_limits<double>::infinity());
  EXPECT_EQ(noise.Believed(RunStatistics(), true), std::numeric_limits<double>::infinity());
  EXPECT_EQ(noise.Expected(fails, false), 0);
}

TEST(RunNoiseTest, WhatIsRemovedCountsNoMore) {
  RunNoise noise;
  const double before = noise.all();
  const RunStatistics wild = Of({1, 3, 0.2, 5});
  noise.Add(wild);
  EXPECT_GT(noise.all(), 2 * before);
  noise.Remove(wild);
  EXPECT_NEAR(noise.all(), before, 1e-12);
}

}  // namespace
}  // namespace fusion
