#include "server/tuner/expression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Expression::Names kNames{{"tile", "stages", "order", "n"},
                               {{"rows", 0}, {"columns", 1}, {"order.rows", 0}, {"row-major", 2}}};

double Value(absl::string_view text, std::vector<double> values = {16, 3, 1, 1000}) {
  absl::StatusOr<Expression> expression = Expression::Parse(text, kNames);
  EXPECT_TRUE(expression.ok()) << text << ": " << expression.status();
  return expression.ok() ? expression->Value(values) : -12345;
}

std::string ErrorOf(absl::string_view text) {
  absl::StatusOr<Expression> expression = Expression::Parse(text, kNames);
  EXPECT_FALSE(expression.ok()) << text;
  return std::string(expression.status().message());
}

TEST(ExpressionTest, Arithmetic) {
  EXPECT_EQ(Value("1 + 2 * 3"), 7);
  EXPECT_EQ(Value("(1 + 2) * 3"), 9);
  EXPECT_EQ(Value("10 - 4 - 3"), 3);
  EXPECT_EQ(Value("tile * stages"), 48);
  EXPECT_EQ(Value("n % tile"), 8);
  EXPECT_EQ(Value("-tile + 1"), -15);
  EXPECT_EQ(Value("1e3 / 2.5e-1"), 4000);
  EXPECT_EQ(Value("min(tile, 4) + max(stages, 7) + abs(-2) + log2(tile)"), 4 + 7 + 2 + 4);
}

TEST(ExpressionTest, Logic) {
  EXPECT_EQ(Value("tile * stages <= 48 && stages > 2"), 1);
  EXPECT_EQ(Value("tile == 8 || stages != 3"), 0);
  EXPECT_EQ(Value("!(tile == 8)"), 1);
}

TEST(ExpressionTest, ValuesOfEnumerations) {
  EXPECT_EQ(Value("order == columns"), 1);
  EXPECT_EQ(Value("order == order.rows"), 0);
  EXPECT_EQ(Value("order == \"row-major\""), 0);
  EXPECT_EQ(Value("order == 'row-major'", {16, 3, 2, 1000}), 1);
}

TEST(ExpressionTest, WhatHasNoValueDoesNotHold) {
  for (const char* text : {"1 / 0", "n % 0", "1 / 0 > 1", "1 / 0 == 1 / 0", "1 / 0 != 1", "1 / 0 || 0",
                           "min(1 / 0, 1)", "log2(-1)"}) {
    absl::StatusOr<Expression> expression = Expression::Parse(text, kNames);
    ASSERT_TRUE(expression.ok()) << text;
    EXPECT_FALSE(expression->Holds({1, 1, 1, 1})) << text;
  }
}

TEST(ExpressionTest, NamesWhatItUses) {
  absl::StatusOr<Expression> expression = Expression::Parse("n > 3 && tile < n && order == rows", kNames);
  ASSERT_TRUE(expression.ok());
  EXPECT_THAT(expression->variables(), ElementsAre(0, 2, 3));
  EXPECT_FALSE(expression->empty());
  EXPECT_TRUE(Expression().empty());
  EXPECT_TRUE(Expression().Holds({}));
}

TEST(ExpressionTest, ErrorsNameTheColumnAndWhatIsExpected) {
  EXPECT_THAT(ErrorOf("tile * "), HasSubstr("column 8"));
  EXPECT_THAT(ErrorOf("tile + size"), HasSubstr("one of tile, stages, order, n; there is no size here"));
  EXPECT_THAT(ErrorOf("(tile"), HasSubstr("expected )"));
  EXPECT_THAT(ErrorOf("tile stages"), HasSubstr("expected an operator or the end"));
  EXPECT_THAT(ErrorOf("1 < tile < 3"), HasSubstr("comparisons do not chain"));
  EXPECT_THAT(ErrorOf("max(1)"), HasSubstr("expected ,"));
  EXPECT_THAT(ErrorOf("tile = 3"), HasSubstr("column 6"));
  EXPECT_THAT(ErrorOf("order == 'diagonal'"), HasSubstr("\"diagonal\" is none"));
  EXPECT_THAT(ErrorOf("order == 'rows"), HasSubstr("closing '"));
  EXPECT_THAT(ErrorOf("1e999"), HasSubstr("a number"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("a number or a name"));
  EXPECT_THAT(ErrorOf("system(1)"), HasSubstr("there is no system here"));
}

TEST(ExpressionTest, DeepAndLongTextsAreRefusedNotFollowed) {
  EXPECT_THAT(ErrorOf(std::string(1000, '(') + "1" + std::string(1000, ')')), HasSubstr("less nesting"));
  EXPECT_THAT(ErrorOf(std::string(1000, '-') + "1"), HasSubstr("less nesting"));
  EXPECT_THAT(ErrorOf(std::string(5000, '1')), HasSubstr("4096"));
  std::string chain = "1";
  for (int i = 0; i < 1000; ++i) absl::StrAppend(&chain, "+1");
  EXPECT_EQ(Value(chain), 1001);
}

}  // namespace
}  // namespace fusion
