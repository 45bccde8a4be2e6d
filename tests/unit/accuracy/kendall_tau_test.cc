#include "server/accuracy/kendall_tau.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace fusion {
namespace {

// The definition, pair by pair.
std::optional<double> ByDefinition(const std::vector<double>& x, const std::vector<double>& y) {
  int64_t difference = 0, differ_x = 0, differ_y = 0;
  for (size_t i = 0; i < x.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      const int sign_x = (x[i] > x[j]) - (x[i] < x[j]), sign_y = (y[i] > y[j]) - (y[i] < y[j]);
      difference += sign_x * sign_y;
      differ_x += sign_x != 0;
      differ_y += sign_y != 0;
    }
  if (differ_x == 0 || differ_y == 0) return std::nullopt;
  return static_cast<double>(difference) /
         std::sqrt(static_cast<double>(differ_x) * static_cast<double>(differ_y));
}

TEST(KendallTauB, IsOneForTheSameOrderAndMinusOneForTheReverse) {
  EXPECT_EQ(KendallTauB({1, 2, 3, 4, 5}, {10, 20, 21, 50, 51}), 1);
  EXPECT_EQ(KendallTauB({1, 2, 3, 4, 5}, {51, 50, 21, 20, 10}), -1);
  EXPECT_EQ(KendallTauB({2, 1}, {5, 3}), 1);
  // Exactly, for any length: nothing is lost in the root.
  for (int n = 2; n < 300; ++n) {
    std::vector<double> up(n);
    std::iota(up.begin(), up.end(), 1);
    const std::vector<double> down(up.rbegin(), up.rend());
    EXPECT_EQ(KendallTauB(up, up), 1) << n;
    EXPECT_EQ(KendallTauB(up, down), -1) << n;
  }
}

TEST(KendallTauB, ByHand) {
  // Of six pairs, (2, 3) alone is in the other order: (5 - 1) / 6.
  EXPECT_DOUBLE_EQ(*KendallTauB({1, 2, 3, 4}, {1, 3, 2, 4}), 4.0 / 6);
  // Of six pairs, one is tied in x, another in y; the other four are concordant: 4 / sqrt(5 * 5).
  EXPECT_DOUBLE_EQ(*KendallTauB({1, 1, 2, 3}, {1, 2, 3, 3}), 0.8);
  // One is tied in both: 5 / sqrt(5 * 5).
  EXPECT_EQ(KendallTauB({1, 1, 2, 3}, {4, 4, 5, 6}), 1);
}

TEST(KendallTauB, IsUndefinedWhereNothingDiffers) {
  EXPECT_EQ(KendallTauB({}, {}), std::nullopt);
  EXPECT_EQ(KendallTauB({1}, {2}), std::nullopt);
  EXPECT_EQ(KendallTauB({1, 1, 1}, {1, 2, 3}), std::nullopt);
  EXPECT_EQ(KendallTauB({1, 2, 3}, {1, 1, 1}), std::nullopt);
}

TEST(KendallTauB, AgreesWithTheDefinitionOnRandomDataWithTies) {
  std::mt19937 random(17);
  for (int trial = 0; trial < 2000; ++trial) {
    const int n = std::uniform_int_distribution<int>(0, trial % 100 == 0 ? 300 : 20)(random);
    // Few values give many ties, also in both at once.
    std::uniform_int_distribution<int> x_values(1, 1 + trial % 7 * 5), y_values(1, 1 + trial % 11 * 3);
    std::vector<double> x, y;
    for (int i = 0; i < n; ++i) {
      x.push_back(x_values(random) * 1e-6);
      y.push_back(trial % 2 == 0 ? y_values(random) : x.back() * y_values(random));
    }
    EXPECT_EQ(KendallTauB(x, y), ByDefinition(x, y)) << "trial " << trial << ", n = " << n;
  }
}

TEST(KendallTauB, CountsPairsBeyond32Bits) {
  // 100,000 points have 5 * 10^9 pairs. The halves are exchanged: 2.5 * 10^9 pairs are discordant, 50,000
  // fewer concordant.
  const int n = 100'000;
  std::vector<double> x(n), y(n);
  std::iota(x.begin(), x.end(), 0);
  for (int i = 0; i < n; ++i) y[i] = (i + n / 2) % n;
  EXPECT_DOUBLE_EQ(*KendallTauB(x, y), -1.0 / (n - 1));
}

}  // namespace
}  // namespace fusion
