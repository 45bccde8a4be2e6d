#include "server/parse/number.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace fusion {
namespace {

TEST(ParseLiteral, Values) {
  EXPECT_EQ(*ParseLiteral("1.0"), 1.0);
  EXPECT_EQ(*ParseLiteral("-2"), -2.0);
  EXPECT_EQ(*ParseLiteral("+1e-3"), 1e-3);
  EXPECT_EQ(*ParseLiteral(".5"), 0.5);
  EXPECT_EQ(*ParseLiteral("1.7976931348623157e308"), std::numeric_limits<double>::max());
  EXPECT_EQ(*ParseLiteral("1e-999"), 0.0);
  EXPECT_TRUE(std::signbit(*ParseLiteral("-1e-999")));
}

TEST(ParseLiteral, Errors) {
  for (const char* text : {"", "1.0f", "0x10", "1e", "1.2.3", "+-1", "inf", "nan", "1 "})
    EXPECT_FALSE(ParseLiteral(text).ok()) << text;
  EXPECT_EQ(ParseLiteral("1e999").status().message(), "1e999 is too large for a double");
  EXPECT_EQ(ParseLiteral("-1e999").status().message(), "-1e999 is too large for a double");
}

TEST(ParseWholeNumber, Values) {
  EXPECT_EQ(*ParseWholeNumber("0"), 0);
  EXPECT_EQ(*ParseWholeNumber("-9223372036854775808"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(*ParseWholeNumber("+9223372036854775807"), std::numeric_limits<int64_t>::max());
}

TEST(ParseWholeNumber, Errors) {
  for (const char* text : {"", "1.0", "1e6", "1000n", "+-1", "0x10"})
    EXPECT_FALSE(ParseWholeNumber(text).ok()) << text;
  EXPECT_EQ(ParseWholeNumber("9223372036854775808").status().message(),
            "9223372036854775808 is too large; a size is at most 2^62");
}

TEST(LiteralText, IsShortAndReadsBack) {
  EXPECT_EQ(LiteralText(1), "1.0");
  EXPECT_EQ(LiteralText(-2.5), "-2.5");
  EXPECT_EQ(LiteralText(1e-5), "1e-5");
  EXPECT_EQ(LiteralText(1e-30), "1e-30");
  EXPECT_EQ(LiteralText(1e100), "1e+100");
  EXPECT_EQ(LiteralText(-0.0), "-0.0");
  for (const char* zero : {"-0", "-0.0", "-0e5", "-1e-400"})
    EXPECT_TRUE(std::signbit(*ParseLiteral(zero))) << zero;
  for (double value : {0.1, 1e-5, 1e5, 1e22, 3e-7, 123456789.125, std::numeric_limits<double>::denorm_min(),
                       std::numeric_limits<double>::max(), 2.0 / 3}) {
    EXPECT_EQ(*ParseLiteral(LiteralText(value)), value) << LiteralText(value);
  }
}

}  // namespace
}  // namespace fusion
