// Expressions over variables of which bounds are known.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "server/tuner/expression.h"

namespace fusion {
namespace {

using Bounds = Expression::Bounds;
using Truth = Expression::Truth;

const Expression::Names kNamesOfBounds{{"x", "y", "n"}, {}};

Expression Parsed(const std::string& text) {
  absl::StatusOr<Expression> expression = Expression::Parse(text, kNamesOfBounds);
  EXPECT_TRUE(expression.ok()) << expression.status();
  return expression.ok() ? *expression : Expression();
}

Truth TruthOf(const std::string& text, Bounds x, Bounds y = {0, 0}, Bounds n = {100, 100}) {
  return Parsed(text).Within(std::vector<Bounds>{x, y, n});
}

// The bounds of x and y after narrowing, "none" where nothing is left.
std::vector<Bounds> Narrowed(const std::string& text, Bounds x, Bounds y = {0, 0}, Bounds n = {100, 100}) {
  std::vector<Bounds> variables = {x, y, n};
  if (!Parsed(text).Narrow(absl::MakeSpan(variables))) return {};
  return variables;
}

TEST(ExpressionBoundsTest, WhetherItHoldsIsKnownFromBounds) {
  EXPECT_EQ(TruthOf("x < 5", {1, 4}), Truth::kAlways);
  EXPECT_EQ(TruthOf("x < 5", {5, 9}), Truth::kNever);
  EXPECT_EQ(TruthOf("x < 5", {1, 9}), Truth::kSometimes);
  EXPECT_EQ(TruthOf("x * y <= n", {1, 10}, {1, 10}), Truth::kAlways);
  EXPECT_EQ(TruthOf("x * y > n && x > 0", {1, 10}, {1, 10}), Truth::kNever);
  EXPECT_EQ(TruthOf("x == 3 || y == 2", {4, 5}, {2, 2}), Truth::kAlways);
  EXPECT_EQ(TruthOf("!(x == 3)", {4, 5}), Truth::kAlways);
  EXPECT_EQ(TruthOf("n % x == 0", {10, 10}), Truth::kAlways);
  EXPECT_EQ(TruthOf("n % x == 0", {30, 30}), Truth::kNever);
  EXPECT_EQ(TruthOf("min(x, y) >= 2 && max(x, y) <= 9", {2, 9}, {3, 4}), Truth::kAlways);
  EXPECT_EQ(TruthOf("abs(x) >= 3", {-9, -3}), Truth::kAlways);
}

TEST(ExpressionBoundsTest, WhatMayHaveNoValueDoesNotHoldAlways) {
  EXPECT_EQ(TruthOf("1 / x < 5", {-1, 1}), Truth::kSometimes);
  EXPECT_EQ(TruthOf("1 / x < 5", {0, 0}), Truth::kNever);
  EXPECT_EQ(TruthOf("log2(x) < 100", {-4, 8}), Truth::kSometimes);
  EXPECT_EQ(TruthOf("log2(x) < 100", {-4, -1}), Truth::kNever);
  EXPECT_EQ(TruthOf("n % x >= 0", {0, 8}), Truth::kSometimes);
  EXPECT_EQ(TruthOf("!(1 / x > 5)", {0, 0}), Truth::kAlways);
  EXPECT_EQ(TruthOf("x * 1e308 * 10 - x * 1e308 * 10 == 0", {1, 2}), Truth::kSometimes);
}

TEST(ExpressionBoundsTest, ConstraintsNarrowTheirVariables) {
  const auto product = Narrowed("x * y == 12", {1, 100}, {3, 4});
  ASSERT_EQ(product.size(), 3u);
  EXPECT_NEAR(product[0].lower, 3, 1e-9);
  EXPECT_NEAR(product[0].upper, 4, 1e-9);
  const auto sum = Narrowed("x + y >= 190 && x <= n", {0, 1000}, {0, 95});
  EXPECT_NEAR(sum[0].lower, 95, 1e-9);
  EXPECT_EQ(sum[0].upper, 100);
  EXPECT_NEAR(Narrowed("x * x <= 9", {0, 100})[0].upper, 100, 0) << "each x is narrowed alone";
  EXPECT_NEAR(Narrowed("abs(x - 5) < 1", {-100, 100})[0].lower, 4, 1e-9);
  EXPECT_NEAR(Narrowed("abs(x - 5) < 1", {-100, 100})[0].upper, 6, 1e-9);
  EXPECT_NEAR(Narrowed("log2(x) >= 3", {1, 100})[0].lower, 8, 1e-9);
  EXPECT_NEAR(Narrowed("x / 4 <= 2", {1, 100})[0].upper, 8, 1e-9);
  EXPECT_EQ(Narrowed("max(x, y) <= 7", {1, 100}, {1, 100})[1].upper, 7);
  EXPECT_EQ(Narrowed("!(x > 3 || y > 2)", {1, 100}, {1, 100})[0].upper, 3);
  EXPECT_EQ(Narrowed("x == 7 || y == 2", {1, 100}, {3, 9})[0].lower, 7);
  const auto multiple = Narrowed("x % 16 == 3", {20, 60});
  EXPECT_EQ(multiple[0].lower, 35);
  EXPECT_EQ(multiple[0].upper, 51);
  // 100 = 1 * 100 = 2 * 50, so below 100 there is 50.
  EXPECT_NEAR(Narrowed("n % x == 0", {26, 99})[0].upper, 50, 1e-9);
  EXPECT_TRUE(Narrowed("x * y == 12", {5, 6}, {3, 4}).empty());
}

}  // namespace
}  // namespace fusion
