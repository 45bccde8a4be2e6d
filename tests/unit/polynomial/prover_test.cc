#include "server/polynomial/prover.h"

#include <gtest/gtest.h>

#include <random>

#include "server/polynomial/certificate.h"

namespace fusion {
namespace {

Polynomial S(const std::string& name) { return Polynomial::Symbol(name); }
std::vector<Polynomial> AtLeastOne(std::initializer_list<const char*> names) {
  std::vector<Polynomial> facts;
  for (const char* name : names) facts.push_back(S(name) - 1);
  return facts;
}
Counter Below(const std::string& name, const Polynomial& end) { return {name, {Polynomial(0)}, {end - 1}}; }

TEST(CertificateTest, IsFoundAndChecked) {
  const Polynomial x = S("x"), y = S("y");
  const std::vector<Polynomial> facts = {x - 1, y - 2};
  const auto found = FindCertificate(2 * x * y - 4, facts);
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(IsCertificate(2 * x * y - 4, facts, *found));
  EXPECT_FALSE(IsCertificate(2 * x * y - 5, facts, *found));
  EXPECT_FALSE(FindCertificate(2 * x * y - 5, facts).has_value());
  // Numbers below 0 and facts that there are not prove nothing.
  EXPECT_FALSE(IsCertificate(-(x - 1), facts, {{.facts = {0}, .numerator = -1}}));
  EXPECT_FALSE(IsCertificate(x, facts, {{.facts = {2}, .numerator = 1}}));
}

TEST(CertificateTest, FractionsAreExact) {
  const Polynomial x = S("x");
  // 3 (x - 1/3) from 7 x - 3 >= 0: 3/7 of it, and 2/7 more.
  const std::vector<Polynomial> facts = {7 * x - 3};
  const auto found = FindCertificate(3 * x - 1, facts, 1);
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(IsCertificate(3 * x - 1, facts, *found));
}

// The obligations of the examples in Chen et al. 2017, each beside one that is false by one.
TEST(ProverTest, ProvesWhatTheExamplesNeed) {
  const Polynomial n = S("n"), s = S("s"), dim = S("dim"), N = S("N"), i = S("i"), j = S("j"), k = S("k");
  const std::vector<Counter> loops = {Below("i", dim), Below("j", n), Below("k", s)};
  const Polynomial x = i * n * s + k * n + j;
  std::vector<Polynomial> facts = AtLeastOne({"n", "s", "dim"});
  {
    Prover prover(facts);
    EXPECT_TRUE(prover.IsNeverNegative(k * n + j, loops));
    EXPECT_TRUE(prover.IsNeverNegative(n * s - 1 - (k * n + j), loops));
    EXPECT_FALSE(prover.IsNeverNegative(n * s - 2 - (k * n + j), loops));
  }
  facts.push_back(N - dim * n * s);
  Prover reversal(facts);
  EXPECT_TRUE(reversal.IsNeverNegative(N - 1 - x, loops));
  EXPECT_FALSE(reversal.IsNeverNegative(N - 2 - x, loops));
  const Polynomial B0 = S("B0"), B1 = S("B1"), d0 = S("d0"), d1 = S("d1");
  std::vector<Polynomial> sizes = AtLeastOne({"N", "s", "B0", "B1", "d0", "d1"});
  sizes.push_back(N - d0 * B0);
  sizes.push_back(N - d1 * B1 * s);
  const std::vector<Counter> nest = {Below("v0", d0), Below("u0", B0), Below("v1", d1), Below("k", s),
                                     Below("u1", B1)};
  const Polynomial c = (S("v0") * B0 + S("u0")) * N + (S("v1") * s + k) * B1 + S("u1");
  Prover multiplication(sizes);
  EXPECT_TRUE(multiplication.IsNeverNegative(N * N - 1 - c, nest));
  EXPECT_FALSE(multiplication.IsNeverNegative(N * N - 2 - c, nest));
}

TEST(ProverTest, EmptyLoopsAndConditionsCount) {
  const Polynomial n = S("n"), i = S("i"), j = S("j");
  Prover prover({n - 1});
  // j < i in a triangle.
  const std::vector<Counter> triangle = {Below("i", n), Below("j", i)};
  EXPECT_TRUE(prover.IsNeverNegative(i - 1 - j, triangle));
  EXPECT_FALSE(prover.IsNeverNegative(i - 2 - j, triangle));
  const std::vector<Counter> square = {Below("i", n), Below("j", n)};
  EXPECT_FALSE(prover.IsNeverNegative(i - j, square));
  EXPECT_TRUE(prover.IsNeverNegative(i - j, square, {i - j}));
}

// Whatever is proved holds: random polynomials in two symbols and two counters, beside all values in a box.
TEST(ProverTest, WhatIsProvedHolds) {
  std::mt19937 random(11);
  int proved = 0;
  for (int trial = 0; trial < 250; ++trial) {
    const std::vector<std::string> names = {"a", "b", "i", "j"};
    Polynomial p(int64_t(random() % 7) - 1);
    for (int term = 0; term < 4; ++term) {
      Polynomial product(int64_t(random() % 7) - 2);
      for (int factor = 0; factor < 1 + int(random() % 2); ++factor)
        product = product * S(names[random() % 4]);
      p = p + product;
    }
    Prover prover(AtLeastOne({"a", "b"}));
    if (!prover.IsNeverNegative(p, {Below("i", S("a")), Below("j", S("b") + S("i"))})) continue;
    ++proved;
    for (int64_t a = 1; a < 6; ++a)
      for (int64_t b = 1; b < 6; ++b)
        for (int64_t i = 0; i < a; ++i)
          for (int64_t j = 0; j < b + i; ++j)
            ASSERT_GE(*p.Evaluate({{"a", a}, {"b", b}, {"i", i}, {"j", j}}), 0) << p.ToString();
  }
  EXPECT_GT(proved, 20);
}

TEST(ProverTest, NothingIsProvedOfWhatIsNotExact) {
  Prover prover({});
  EXPECT_FALSE(prover.IsNeverNegative(Polynomial::Inexact(), {}));
}

}  // namespace
}  // namespace fusion
