#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "library/catalog/elementary_function.h"

namespace fusion {
namespace {

const std::vector<std::string> kNames = {"r", "k", "c"};
const StaticParameters kValues = {3, 5, 7};

int64_t Value(const std::string& text) { return EvaluateExpression(text, kNames, kValues).value_or(-12345); }
std::string Message(const std::string& text) {
  return std::string(EvaluateExpression(text, kNames, kValues).status().message());
}

TEST(ExpressionTest, PrecedenceAndAssociativity) {
  EXPECT_EQ(Value("2"), 2);
  EXPECT_EQ(Value("2*r*k*c"), 210);
  EXPECT_EQ(Value("r*c*(2*k-1)"), 189);
  EXPECT_EQ(Value("r + k * c"), 38);
  EXPECT_EQ(Value("100 - r - k"), 92);
  EXPECT_EQ(Value("100 / r / k"), 6);
  EXPECT_EQ(Value("-r + 10"), 7);
  EXPECT_EQ(Value("2 - -3"), 5);
  EXPECT_EQ(Value("((r))"), 3);
}

TEST(ExpressionTest, ErrorsSayWhere) {
  EXPECT_EQ(Message("2*q"), "unknown name \"q\" at column 4 of \"2*q\"");
  EXPECT_EQ(Message("2*"), "a number or a name is missing at column 3 of \"2*\"");
  EXPECT_EQ(Message(""), "a number or a name is missing at column 1 of \"\"");
  EXPECT_EQ(Message("(r"), "\")\" is missing at column 3 of \"(r\"");
  EXPECT_EQ(Message("r r"), "unexpected text at column 3 of \"r r\"");
  EXPECT_EQ(Message("1/(r-3)"), "division by zero at column 8 of \"1/(r-3)\"");
  EXPECT_EQ(Message("3x"), "not a number at column 3 of \"3x\"");
}

TEST(ExpressionTest, HostileInputIsAnError) {
  EXPECT_FALSE(EvaluateExpression("9223372036854775807+1", {}, {}).ok());
  EXPECT_FALSE(EvaluateExpression("9223372036854775807*2", {}, {}).ok());
  EXPECT_FALSE(EvaluateExpression("(-9223372036854775807-1)/-1", {}, {}).ok());
  EXPECT_FALSE(EvaluateExpression("99999999999999999999", {}, {}).ok());
  EXPECT_FALSE(EvaluateExpression(std::string(1000000, '('), {}, {}).ok());
  EXPECT_FALSE(EvaluateExpression(std::string(1000000, '-') + "1", {}, {}).ok());
  EXPECT_EQ(EvaluateExpression("9223372036854775806+1", {}, {}).value(), std::numeric_limits<int64_t>::max());
}

TEST(ConstraintTest, ComparisonsAndConjunctions) {
  auto holds = [](const std::string& text) { return EvaluateConstraint(text, kNames, kValues).value(); };
  EXPECT_TRUE(holds(""));
  EXPECT_TRUE(holds("r < k && k < c"));
  EXPECT_FALSE(holds("r < k && k > c"));
  EXPECT_FALSE(holds("r > k && k < c"));
  EXPECT_TRUE(holds("r >= 3 && r <= 3 && r == 3 && r != 4"));
  EXPECT_FALSE(holds("r >= 4"));
  EXPECT_FALSE(holds("r <= 2"));
  EXPECT_FALSE(holds("r != 3"));
  EXPECT_TRUE(holds("r + k == 8"));
}

TEST(ConstraintTest, Errors) {
  EXPECT_FALSE(EvaluateConstraint("r", kNames, kValues).ok());
  EXPECT_FALSE(EvaluateConstraint("r <", kNames, kValues).ok());
  EXPECT_FALSE(EvaluateConstraint("r < 3 &&", kNames, kValues).ok());
  EXPECT_FALSE(EvaluateConstraint("r < 3 || k < 3", kNames, kValues).ok());
}

TEST(OfferedTest, ByStaticParametersAndDataType) {
  const Overload overload{.static_parameters = {"r", "c"}};
  const Implementation any, wide{.constraint = "c >= 4 && r < c"}, f64{.data_types = {v1::F64}};
  EXPECT_TRUE(Offered(overload, any, {1, 1}, v1::F32));
  EXPECT_TRUE(Offered(overload, wide, {3, 4}, v1::F32));
  EXPECT_FALSE(Offered(overload, wide, {4, 4}, v1::F32));
  EXPECT_FALSE(Offered(overload, wide, {1, 3}, v1::F64));
  EXPECT_TRUE(Offered(overload, f64, {1, 1}, v1::F64));
  EXPECT_FALSE(Offered(overload, f64, {1, 1}, v1::F32));
}

TEST(ThreadsPerElementTest, FollowsTheResult) {
  Implementation one{.threads = v1::ONE}, entry{.threads = v1::PER_RESULT_ENTRY},
      row{.threads = v1::PER_RESULT_ROW}, tile{.threads = v1::PER_RESULT_TILE};
  EXPECT_EQ(ThreadsPerElement(tile, {3, 5}), 2);
  EXPECT_EQ(ThreadsPerElement(tile, {8, 17}), 10);
  EXPECT_EQ(ThreadsPerElement(tile, {9}), 3);
  const Implementation quad{.threads = v1::PER_RESULT_QUAD}, warp{.threads = v1::WARP_PER_8_ROWS};
  EXPECT_EQ(ThreadsPerElement(quad, {3, 5}), 6);
  EXPECT_EQ(ThreadsPerElement(quad, {3, 4}), 3);
  EXPECT_EQ(ThreadsPerElement(quad, {9}), 3);
  EXPECT_EQ(ThreadsPerElement(quad, {}), 1);
  EXPECT_EQ(ThreadsPerElement(warp, {8, 5}), 32);
  EXPECT_EQ(ThreadsPerElement(warp, {17, 5}), 96);
  EXPECT_EQ(ThreadsPerElement(warp, {}), 32);
  EXPECT_EQ(ThreadsPerElement(one, {3, 5}), 1);
  EXPECT_EQ(ThreadsPerElement(entry, {3, 5}), 15);
  EXPECT_EQ(ThreadsPerElement(row, {3, 5}), 3);
  EXPECT_EQ(ThreadsPerElement(entry, {}), 1);
  EXPECT_EQ(ThreadsPerElement(row, {}), 1);
}

}  // namespace
}  // namespace fusion
