#include "worker/measure/host_data.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <vector>

namespace fusion {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(FillEntriesTest, ValuesAreInTheirDomainAndSpread) {
  constexpr int64_t kCount = 200003;
  for (v1::ValueDomain domain : {v1::REAL, v1::POSITIVE, v1::NONZERO}) {
    std::vector<float> entries(kCount);
    FillEntries(entries.data(), v1::F32, kCount, domain, 42);
    const double low = domain == v1::REAL ? -0.5 : 0.25, high = domain == v1::REAL ? 1.0 : 1.25;
    double sum = 0;
    std::set<float> different;
    for (float entry : entries) {
      ASSERT_GE(entry, low);
      ASSERT_LT(entry, high);
      sum += entry;
      different.insert(entry);
    }
    EXPECT_NEAR(sum / kCount, (low + high) / 2, 0.01);
    EXPECT_GT(different.size(), kCount * 9 / 10);
  }
}

TEST(FillEntriesTest, DependsOnTheKeyAloneNotOnTheLength) {
  std::vector<double> longer(100000), shorter(70001), other(70001);
  FillEntries(longer.data(), v1::F64, 100000, v1::REAL, 1);
  FillEntries(shorter.data(), v1::F64, 70001, v1::REAL, 1);
  FillEntries(other.data(), v1::F64, 70001, v1::REAL, 2);
  EXPECT_TRUE(std::equal(shorter.begin(), shorter.end(), longer.begin()));
  EXPECT_NE(shorter, other);
}

TEST(WidenEntriesTest, IsExact) {
  std::vector<float> narrow(100001);
  FillEntries(narrow.data(), v1::F32, 100001, v1::REAL, 3);
  std::vector<double> wide(100001);
  WidenEntries(wide.data(), narrow.data(), v1::F32, 100001);
  for (size_t i = 0; i < narrow.size(); ++i) ASSERT_EQ(wide[i], static_cast<double>(narrow[i]));
}

TEST(HashBytesTest, SeesEveryBitAndTheOrder) {
  std::vector<uint32_t> words(65539);  // not a multiple of 8 bytes
  FillEntries(words.data(), v1::F32, 65539, v1::REAL, 4);
  const int64_t bytes = 65539 * 4;
  const uint64_t hash = HashBytes(words.data(), bytes);
  EXPECT_EQ(HashBytes(words.data(), bytes), hash);
  for (size_t at : {size_t{0}, size_t{1}, size_t{40000}, size_t{65538}}) {
    for (uint32_t bit : {1u, 1u << 31}) {
      words[at] ^= bit;
      EXPECT_NE(HashBytes(words.data(), bytes), hash) << at;
      words[at] ^= bit;
    }
  }
  std::swap(words[10], words[1000]);
  EXPECT_NE(HashBytes(words.data(), bytes), hash);
}

TEST(HashBytesTest, PiecesAddUp) {
  std::vector<double> entries(5000);
  FillEntries(entries.data(), v1::F64, 5000, v1::REAL, 5);
  EXPECT_EQ(HashBytes(entries.data(), 5000 * 8),
            HashBytes(entries.data(), 1234 * 8) + HashBytes(entries.data() + 1234, (5000 - 1234) * 8, 1234));
  EXPECT_EQ(HashBytes(entries.data(), 0), 0u);
}

TEST(ScaleTest, RootMeanSquareWithoutOverflowOverFiniteEntries) {
  EXPECT_DOUBLE_EQ(RootMeanSquare(MeasureScale(std::vector<double>{3, -4, 0, 0}.data(), v1::F64, 4)), 2.5);
  const std::vector<double> huge = {1e300, -1e300, kNan, kInfinity};
  EXPECT_DOUBLE_EQ(RootMeanSquare(MeasureScale(huge.data(), v1::F64, 4)), 1e300);
  // As f32 these are infinite.
  EXPECT_EQ(RootMeanSquare(MeasureScale(huge.data(), v1::F32, 4)), 0);
  EXPECT_EQ(RootMeanSquare(MeasureScale(nullptr, v1::F32, 0)), 0);
  std::vector<double> many(300001, 2.0);
  many[300000] = 0;
  EXPECT_NEAR(RootMeanSquare(MeasureScale(many.data(), v1::F32, 300001)), 2 * std::sqrt(300000.0 / 300001),
              1e-12);
}

double Error(float output, double reference, double scale) {
  return CompareEntries(&output, v1::F32, &reference, 1, scale).max_relative_error;
}

TEST(CompareEntriesTest, RelativeToTheLargerOfEntryAndScale) {
  EXPECT_EQ(Error(1.0f, 1.0, 1), 0);
  EXPECT_DOUBLE_EQ(Error(1.5f, 1.0, 0.5), 0.5);
  EXPECT_DOUBLE_EQ(Error(1.5f, 1.0, 10), 0.05);
  EXPECT_DOUBLE_EQ(Error(-2.0f, 2.0, 0), 2);
  EXPECT_EQ(Error(0.1f, 0.0, 0), kInfinity);
  EXPECT_EQ(Error(0.0f, 0.0, 0), 0);
}

TEST(CompareEntriesTest, NotANumberAndInfinity) {
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(Error(nan, 1.0, 1), kInfinity);
  EXPECT_EQ(Error(nan, kNan, 1), 0);
  EXPECT_EQ(Error(1.0f, kNan, 1), kInfinity);
  EXPECT_EQ(Error(infinity, kInfinity, 1), 0);
  EXPECT_EQ(Error(-infinity, kInfinity, 1), kInfinity);
  EXPECT_EQ(Error(infinity, 1.0, 1), kInfinity);
  EXPECT_EQ(Error(3.0e38f, kInfinity, 1), kInfinity);
  // f32 overflows where the f64 reference does not.
  EXPECT_EQ(Error(infinity, 1e39, 1), 0);
  EXPECT_EQ(Error(-infinity, -1e300, 1), 0);
  EXPECT_EQ(Error(-infinity, 1e39, 1), kInfinity);
  EXPECT_EQ(Error(std::numeric_limits<float>::max(), 3.4028234663852886e38, 1), 0);
}

TEST(CompareEntriesTest, FindsTheFirstOfTheWorst) {
  constexpr int64_t kCount = 300007;
  std::vector<float> output(kCount, 1.0f);
  std::vector<double> reference(kCount, 1.0);
  EXPECT_EQ(CompareEntries(output.data(), v1::F32, reference.data(), kCount, 1).worst_index, -1);
  output[100] = 1.25f;
  output[200000] = 2.0f;
  output[250000] = 2.0f;
  const Comparison comparison = CompareEntries(output.data(), v1::F32, reference.data(), kCount, 1);
  EXPECT_EQ(comparison.worst_index, 200000);
  EXPECT_EQ(comparison.max_relative_error, 1);
}

}  // namespace
}  // namespace fusion
