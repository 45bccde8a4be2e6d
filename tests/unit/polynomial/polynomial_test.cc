#include "server/polynomial/polynomial.h"

#include <gtest/gtest.h>

#include <random>

namespace fusion {
namespace {

Polynomial S(const char* name) { return Polynomial::Symbol(name); }

TEST(PolynomialTest, TextHasHigherDegreesFirstAndSymbolsInTheOrderGiven) {
  const Polynomial s = S("s"), B = S("B"), B0 = S("B0"), B1 = S("B1");
  EXPECT_EQ((s * B0 * B1 + s * B * B1 + B0 * B).ToString({"s", "B0", "B1", "B"}), "s*B0*B1 + s*B1*B + B0*B");
  EXPECT_EQ((2 * s * B + 2).ToString({"s", "B"}), "2*s*B + 2");
  EXPECT_EQ((s * s - B - 7).ToString(), "s^2 - B - 7");
  EXPECT_EQ((-s).ToString(), "-s");
  EXPECT_EQ((s - s).ToString(), "0");
}

TEST(PolynomialTest, RangeOfAnIndex) {
  // Moreno Maza 2017: x = i * n_thread * s + k * n_thread + j, with j below n_thread and k below s.
  const Polynomial i = S("i"), n = S("n_thread"), s = S("s"), k = S("k"), j = S("j");
  const Polynomial x = i * n * s + k * n + j;
  const Polynomial last = x.Substitute("k", s - 1).Substitute("j", n - 1);
  EXPECT_EQ(last, i * n * s + (s - 1) * n + n - 1);
  EXPECT_EQ(last - x.Substitute("k", 0).Substitute("j", 0),
            n * s - 1);  // the print has n*s, which is the count
}

TEST(PolynomialTest, CoefficientsAreOfEachPower) {
  const Polynomial x = S("x"), y = S("y");
  const auto coefficients = (3 * x * x * y + x - y + 1).CoefficientsOf("x");
  ASSERT_EQ(coefficients.size(), 3u);
  EXPECT_EQ(coefficients[0], 1 - y);
  EXPECT_EQ(coefficients[1], Polynomial(1));
  EXPECT_EQ(coefficients[2], 3 * y);
  EXPECT_EQ(y.CoefficientsOf("x").size(), 1u);
}

TEST(PolynomialTest, WhatDoesNotFitIsNotExactAndNothingFollowsFromIt) {
  Polynomial large(int64_t{1} << 62);
  large = large * large;  // 2^124 fits
  EXPECT_TRUE(large.exact());
  EXPECT_FALSE(large.Constant().has_value());
  const Polynomial larger = large * 1024;
  EXPECT_FALSE(larger.exact());
  EXPECT_FALSE((larger - larger).exact());
  EXPECT_FALSE(larger == larger);
  EXPECT_FALSE(larger.IsZero());
  EXPECT_EQ(larger.Evaluate({}), std::nullopt);
  Polynomial power = 1;
  for (int i = 0; i < Polynomial::kMostPower; ++i) power = power * S("x");
  EXPECT_TRUE(power.exact());
  EXPECT_FALSE((power * S("x")).exact());
  Polynomial sum;
  for (int i = 0; i <= Polynomial::kMostTerms; ++i) sum = sum + S(("x" + std::to_string(i)).c_str());
  EXPECT_FALSE(sum.exact());
}

TEST(PolynomialTest, ValuesOfSymbolsAreNeeded) {
  const Polynomial p = S("x") * S("y") - 3;
  EXPECT_EQ(p.Evaluate({{"x", 5}, {"y", -2}}), -13);
  EXPECT_EQ(p.Evaluate({{"x", 5}}), std::nullopt);
  EXPECT_EQ(p.Evaluate({{"x", int64_t{1} << 62}, {"y", int64_t{1} << 62}}), std::nullopt);
}

TEST(PolynomialTest, ArithmeticIsThatOfValues) {
  std::mt19937 random(7);
  const std::vector<std::string> names = {"a", "b", "c"};
  const auto any = [&] {
    Polynomial p;
    for (int term = 0; term < 4; ++term) {
      Polynomial product(int64_t(random() % 11) - 5);
      for (int factor = 0; factor < int(random() % 4); ++factor)
        product = product * Polynomial::Symbol(names[random() % 3]);
      p = p + product;
    }
    return p;
  };
  for (int trial = 0; trial < 300; ++trial) {
    const Polynomial p = any(), q = any();
    std::map<std::string, int64_t> at;
    for (const std::string& name : names) at[name] = int64_t(random() % 19) - 9;
    const int64_t of_p = *p.Evaluate(at), of_q = *q.Evaluate(at);
    EXPECT_EQ((p + q).Evaluate(at), of_p + of_q);
    EXPECT_EQ((p - q).Evaluate(at), of_p - of_q);
    EXPECT_EQ((p * q).Evaluate(at), of_p * of_q);
    auto with_q = at;
    with_q["a"] = of_q;
    EXPECT_EQ(p.Substitute("a", q).Evaluate(at), p.Evaluate(with_q));
  }
}

}  // namespace
}  // namespace fusion
