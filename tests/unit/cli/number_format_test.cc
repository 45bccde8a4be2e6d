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

TEST(NumberFormatTest, CountsAreReadAsPeopleWriteThem) {
  EXPECT_EQ(ParseCount("0"), 0);
  EXPECT_EQ(ParseCount("1000003"), 1000003);
  EXPECT_EQ(ParseCount("-5"), -5);
  EXPECT_EQ(ParseCount("1e6"), 1000000);
  EXPECT_EQ(ParseCount("2.5E3"), 2500);
  EXPECT_EQ(ParseCount("64k"), 64000);
  EXPECT_EQ(ParseCount("1M"), 1000000);
  EXPECT_EQ(ParseCount("1.5G"), 1500000000);
  EXPECT_EQ(ParseCount("7.0"), 7);
  EXPECT_EQ(ParseCount("0e999"), 0);
  EXPECT_EQ(ParseCount("9223372036854775807"), std::numeric_limits<int64_t>::max());
  for (const char* text :
       {"", "-", ".", "e6", "1e", "1e-3", "1.5", "1.0001k", "1K", "1M2", "1 k", "0x10", "1e6M", "nan",
        "9223372036854775808", "1e19", "99999999999999999999999999", "1e99999999999"})
    EXPECT_FALSE(ParseCount(text).has_value()) << text;
}

}  // namespace
}  // namespace fusion
