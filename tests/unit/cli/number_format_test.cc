#include "client/cli/number_format.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace fusion {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(NumberFormatTest, UnitOfAColumnSuitsItsSmallestValue) {
  TimeUnit unit = ChooseTimeUnit({3.5e-3, 381.2e-6, 0.02});
  EXPECT_STREQ(unit.name, "us");
  EXPECT_EQ(FormatInUnit(381.2e-6, unit), "381.2");
  EXPECT_EQ(FormatInUnit(3.5e-3, unit), "3500.0");
  EXPECT_STREQ(ChooseTimeUnit({2.0}).name, "s");
  EXPECT_STREQ(ChooseTimeUnit({1e-3}).name, "ms");
  EXPECT_STREQ(ChooseTimeUnit({1e-6}).name, "us");
  EXPECT_STREQ(ChooseTimeUnit({9.9e-7}).name, "ns");
}

TEST(NumberFormatTest, UnitIgnoresWhatIsNoTime) {
  EXPECT_STREQ(ChooseTimeUnit({}).name, "s");
  EXPECT_STREQ(ChooseTimeUnit({0, -1, std::nan(""), kInfinity}).name, "s");
  EXPECT_STREQ(ChooseTimeUnit({0, 2e-3}).name, "ms");
}

TEST(NumberFormatTest, Seconds) {
  EXPECT_EQ(FormatSeconds(0), "0 s");
  EXPECT_EQ(FormatSeconds(1.5), "1.500 s");
  EXPECT_EQ(FormatSeconds(12.25e-6), "12.25 us");
  EXPECT_EQ(FormatSeconds(123.45e-9), "123.5 ns");
  EXPECT_EQ(FormatSeconds(1234.4), "1234 s");
  EXPECT_EQ(FormatSeconds(std::nan("")), "-");
  EXPECT_EQ(FormatSeconds(kInfinity), "-");
}

TEST(NumberFormatTest, Bytes) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(999), "999 B");
  EXPECT_EQ(FormatBytes(15237120), "15.24 MB");
  EXPECT_EQ(FormatBytes(999999), "1.000 MB");
  EXPECT_EQ(FormatBytesPerSecond(4.25e12), "4.250 TB/s");
  EXPECT_EQ(FormatBytesPerSecond(0), "unknown");
}

TEST(NumberFormatTest, SpeedupShareCountError) {
  EXPECT_EQ(FormatSpeedup(2.6), "2.60x");
  EXPECT_EQ(FormatSpeedup(12.34), "12.3x");
  EXPECT_EQ(FormatSpeedup(0), "-");
  EXPECT_EQ(FormatShare(0.934), "93 %");
  EXPECT_EQ(FormatShare(0.0934), "9.3 %");
  EXPECT_EQ(FormatShare(1.02), "102 %");
  EXPECT_EQ(FormatShare(std::nan("")), "-");
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(1000003), "1,000,003");
  EXPECT_EQ(FormatCount(-1234), "-1,234");
  EXPECT_EQ(Counted(0, "graph"), "0 graphs");
  EXPECT_EQ(Counted(1, "graph"), "1 graph");
  EXPECT_EQ(Counted(1003, "graph"), "1,003 graphs");
  EXPECT_EQ(FormatError(0), "0");
  EXPECT_EQ(FormatError(3.14e-7), "3.1e-07");
}

}  // namespace
}  // namespace fusion
