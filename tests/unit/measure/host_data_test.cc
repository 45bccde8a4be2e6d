#include "worker/measure/host_data.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "library/verification/input_rules.h"

namespace fusion {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

InputRule RuleOfF64() {
  v1::Buffer input;
  input.set_count(1);
  input.set_data_type(v1::F64);
  return RuleOf(input, {});
}

TEST(FillEntriesTest, ValuesAreInTheirDomainAndSpread) {
  constexpr int64_t kCount = 200003;
  for (v1::ValueDomain domain : {v1::REAL, v1::POSITIVE, v1::NONZERO}) {
    std::vector<float> entries(kCount);
    v1::Buffer input;
    input.set_count(kCount);
    input.set_data_type(v1::F32);
    input.set_domain(domain);
    FillEntries(entries.data(), v1::F32, kCount, RuleOf(input, {}), 42);
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
  FillEntries(longer.data(), v1::F64, 100000, RuleOfF64(), 1);
  FillEntries(shorter.data(), v1::F64, 70001, RuleOfF64(), 1);
  FillEntries(other.data(), v1::F64, 70001, RuleOfF64(), 2);
  EXPECT_TRUE(std::equal(shorter.begin(), shorter.end(), longer.begin()));
  EXPECT_NE(shorter, other);
}

TEST(WidenEntriesTest, IsExact) {
  std::vector<float> narrow(100001);
  FillEntries(narrow.data(), v1::F32, 100001, KnownRule(), 3);
  std::vector<double> wide(100001);
  WidenEntries(wide.data(), narrow.data(), v1::F32, 100001);
  for (size_t i = 0; i < narrow.size(); ++i) ASSERT_EQ(wide[i], static_cast<double>(narrow[i]));
}

TEST(HashBytesTest, SeesEveryBitAndTheOrder) {
  std::vector<uint32_t> words(65539);  // not a multiple of 8 bytes
  FillEntries(words.data(), v1::F32, 65539, KnownRule(), 4);
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
  FillEntries(entries.data(), v1::F64, 5000, RuleOfF64(), 5);
  EXPECT_EQ(HashBytes(entries.data(), 5000 * 8),
            HashBytes(entries.data(), 1234 * 8) + HashBytes(entries.data() + 1234, (5000 - 1234) * 8, 1234));
  EXPECT_EQ(HashBytes(entries.data(), 0), 0u);
}

double ScaleOf(const ScaleParts& parts) { return FiguresOf(parts).scale; }

TEST(ScaleTest, RootMeanSquareWithoutOverflowOverFiniteEntries) {
  EXPECT_DOUBLE_EQ(ScaleOf(MeasureScale(std::vector<double>{3, -4, 0, 0}.data(), v1::F64, 4)), 2.5);
  const std::vector<double> huge = {1e300, -1e300, kNan, kInfinity};
  EXPECT_DOUBLE_EQ(ScaleOf(MeasureScale(huge.data(), v1::F64, 4)), 1e300);
  // As f32 these are infinite.
  EXPECT_EQ(ScaleOf(MeasureScale(huge.data(), v1::F32, 4)), 0);
  EXPECT_EQ(ScaleOf(MeasureScale(nullptr, v1::F32, 0)), 0);
  std::vector<double> many(300001, 2.0);
  many[300000] = 0;
  EXPECT_NEAR(ScaleOf(MeasureScale(many.data(), v1::F32, 300001)), 2 * std::sqrt(300000.0 / 300001), 1e-12);
}

double Error(float output, double reference, double scale) {
  return CompareEntries(&output, v1::F32, &reference, 1, scale, nullptr).max_relative_error;
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

TEST(CompareEntriesTest, ExcusedErrorsAreNone) {
  const float output[] = {1.5f, 1.5f, static_cast<float>(kNan), 0};
  const double reference[] = {1, 1, 1, 1e-16}, excused[] = {0.5, 0.25, kInfinity, 1e-15};
  EXPECT_EQ(CompareEntries(&output[0], v1::F32, &reference[0], 1, 1, &excused[0]).max_relative_error, 0);
  EXPECT_EQ(CompareEntries(&output[1], v1::F32, &reference[1], 1, 1, &excused[1]).max_relative_error, 0.25);
  EXPECT_EQ(CompareEntries(&output[2], v1::F32, &reference[2], 2, 0, &excused[2]).max_relative_error, 0);
}

TEST(ExcuseEntriesTest, TheLargestDifferenceCountsAndNumbersAreInfinitelyFarFromWhatIsNone) {
  std::vector<double> excused(4, kNan);
  const std::vector<double> reference = {1, 1, kNan, 2}, near = {1.5, kNan, kNan, 2}, far = {0, 1, kNan, 2};
  ExcuseEntries(excused.data(), reference.data(), near.data(), v1::F32, 4, 2, /*is_first=*/true);
  EXPECT_EQ(excused, (std::vector<double>{1, kInfinity, 0, 0}));
  ExcuseEntries(excused.data(), reference.data(), far.data(), v1::F32, 4, 2, /*is_first=*/false);
  EXPECT_EQ(excused, (std::vector<double>{2, kInfinity, 0, 0}));
}

TEST(PerturbEntriesTest, ChangesAreSmallAndOtherOnesForEachKey) {
  std::vector<double> one(1000, 3.0), two(1000, 3.0), infinite(2, kInfinity);
  PerturbEntries(one.data(), 1000, 1e-3, 1);
  PerturbEntries(two.data(), 1000, 1e-3, 2);
  PerturbEntries(infinite.data(), 2, 1e-3, 1);
  int different = 0;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_NEAR(one[i], 3.0, 3.0001e-3);
    different += one[i] != 3.0 && one[i] != two[i];
  }
  EXPECT_GT(different, 990);
  EXPECT_EQ(infinite, std::vector<double>(2, kInfinity));
}

TEST(CompareEntriesTest, FindsTheFirstOfTheWorst) {
  constexpr int64_t kCount = 300007;
  std::vector<float> output(kCount, 1.0f);
  std::vector<double> reference(kCount, 1.0);
  EXPECT_EQ(CompareEntries(output.data(), v1::F32, reference.data(), kCount, 1, nullptr).worst_index, -1);
  output[100] = 1.25f;
  output[200000] = 2.0f;
  output[250000] = 2.0f;
  const Comparison comparison = CompareEntries(output.data(), v1::F32, reference.data(), kCount, 1, nullptr);
  EXPECT_EQ(comparison.worst_index, 200000);
  EXPECT_EQ(comparison.max_relative_error, 1);
}

}  // namespace
}  // namespace fusion
