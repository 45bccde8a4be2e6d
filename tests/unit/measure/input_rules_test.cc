#include "library/verification/input_rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

namespace fusion {
namespace {

using Kind = DataPattern::Kind;

v1::Buffer Matrix(v1::InputValues::Kind kind, int64_t rows, int64_t columns) {
  v1::Buffer buffer;
  buffer.set_data_type(v1::F64);
  buffer.set_rows(rows);
  buffer.set_columns(columns);
  buffer.set_row_stride(columns);
  buffer.set_count(std::max<int64_t>(rows, 1) * columns);
  buffer.mutable_values()->set_kind(kind);
  return buffer;
}

v1::Buffer Range(v1::InputValues::Kind kind, double lower, double upper) {
  v1::Buffer buffer = Matrix(kind, 20, 30);
  buffer.mutable_values()->set_lower(lower);
  buffer.mutable_values()->set_upper(upper);
  return buffer;
}

std::vector<double> Entries(const v1::Buffer& input, const DataPattern& pattern = {}, uint64_t key = 7) {
  const InputRule rule = RuleOf(input, pattern);
  std::vector<double> entries;
  for (int64_t i = 0; i < input.count(); ++i) entries.push_back(InputEntry(rule, key, i));
  return entries;
}

TEST(RuleOfTest, PositiveDefiniteMatricesAreSymmetricAndDominatedByTheirDiagonals) {
  for (int64_t n : {1, 2, 5, 64}) {
    // Three of them, one behind the other, as small elements of a list are.
    v1::Buffer input = Matrix(v1::InputValues::POSITIVE_DEFINITE, n, n);
    input.set_count(3 * n * n);
    const std::vector<double> all = Entries(input);
    for (int matrix = 0; matrix < 3; ++matrix) {
      const double* a = all.data() + matrix * n * n;
      for (int64_t row = 0; row < n; ++row) {
        double beside = 0;
        for (int64_t column = 0; column < n; ++column) {
          EXPECT_EQ(a[row * n + column], a[column * n + row]);
          if (column != row) beside += std::abs(a[row * n + column]);
        }
        EXPECT_LE(beside, 0.5);
        EXPECT_GE(a[row * n + row], 1);
        EXPECT_LE(a[row * n + row], 2);
      }
    }
    if (n > 1) {
      EXPECT_NE(std::vector<double>(all.begin(), all.begin() + n * n),
                std::vector<double>(all.begin() + n * n, all.begin() + 2 * n * n));
    }
  }
}

TEST(RuleOfTest, RowsOfProbabilitiesAddUpToOneAndUnitRowsHaveTheNormOne) {
  for (int64_t columns : {1, 2, 7, 1001}) {
    const std::vector<double> p = Entries(Matrix(v1::InputValues::PROBABILITIES, 5, columns)),
                              u = Entries(Matrix(v1::InputValues::UNIT_ROWS, 5, columns));
    for (int64_t row = 0; row < 5; ++row) {
      double sum = 0, squares = 0;
      for (int64_t i = row * columns; i < (row + 1) * columns; ++i) {
        EXPECT_GT(p[i], 0);
        sum += p[i];
        squares += u[i] * u[i];
      }
      EXPECT_NEAR(sum, 1, 1e-12);
      EXPECT_NEAR(squares, 1, 1e-12);
    }
  }
}

TEST(RuleOfTest, SortedRowsAscendInTheirRangeAndOneHotRowsHaveOneEntry) {
  v1::Buffer input = Matrix(v1::InputValues::SORTED, 4, 100);
  input.mutable_values()->set_lower(-3);
  input.mutable_values()->set_upper(5);
  const std::vector<double> sorted = Entries(input), hot = Entries(Matrix(v1::InputValues::ONE_HOT, 4, 100));
  std::set<int64_t> places;
  for (int64_t row = 0; row < 4; ++row) {
    EXPECT_TRUE(std::is_sorted(sorted.begin() + row * 100, sorted.begin() + (row + 1) * 100));
    EXPECT_EQ(std::count(hot.begin() + row * 100, hot.begin() + (row + 1) * 100, 1.0), 1);
    EXPECT_EQ(std::count(hot.begin() + row * 100, hot.begin() + (row + 1) * 100, 0.0), 99);
    places.insert(std::find(hot.begin() + row * 100, hot.end(), 1.0) - hot.begin() - row * 100);
  }
  EXPECT_GE(sorted[0], -3);
  EXPECT_LT(sorted[99], 5);
  EXPECT_GT(places.size(), 1u);
}

TEST(RuleOfTest, IntegersAreWholeAndHaveBothEnds) {
  const std::vector<double> entries = Entries(Range(v1::InputValues::INTEGERS, -2, 3));
  EXPECT_EQ(std::set<double>(entries.begin(), entries.end()), (std::set<double>{-2, -1, 0, 1, 2, 3}));
}

TEST(RuleOfTest, WholeNumbersAreNeverZeroAndNegativeOnesAreBelowIt) {
  const std::vector<double> whole = Entries(Matrix(v1::InputValues::DEFAULT, 20, 30), {.kind = Kind::kWhole});
  EXPECT_EQ(std::set<double>(whole.begin(), whole.end()), (std::set<double>{-3, -2, -1, 1, 2, 3}));
  const std::vector<double> negative =
      Entries(Matrix(v1::InputValues::DEFAULT, 20, 30), {.kind = Kind::kNegative});
  EXPECT_EQ(std::set<double>(negative.begin(), negative.end()), (std::set<double>{-3, -2, -1}));
}

TEST(RuleOfTest, EveryPatternKeepsToTheRangeThatWasAskedFor) {
  const std::pair<double, double> ranges[] = {{0.5, 2}, {-4, -1}, {-0.25, 0.125}, {0, 1}, {-100, 100}};
  for (const auto& [lower, upper] : ranges)
    for (int kind = 0; kind <= static_cast<int>(Kind::kClass); ++kind)
      for (bool small : {false, true}) {
        const DataPattern pattern{.kind = static_cast<Kind>(kind), .small = small, .step = 8, .phase = 3};
        for (double entry : Entries(Range(v1::InputValues::UNIFORM, lower, upper), pattern)) {
          EXPECT_GE(entry, lower) << kind;
          EXPECT_LE(entry, upper) << kind;
          if (kind == 0) {
            EXPECT_TRUE(entry != lower && entry != upper) << "neither bound is a value";
          }
        }
        for (double entry : Entries(Range(v1::InputValues::INTEGERS, -2, 7), pattern)) {
          EXPECT_GE(entry, -2) << kind;
          EXPECT_LE(entry, 7) << kind;
          EXPECT_EQ(entry, std::floor(entry)) << kind;
        }
      }
}

TEST(RuleOfTest, RangesMayBeAsWideAsTheTypeAndAsNarrowAsTwoOfItsSteps) {
  v1::Buffer wide = Range(v1::InputValues::UNIFORM, -1.7e308, 1.7e308);
  for (double entry : Entries(wide)) EXPECT_TRUE(std::isfinite(entry));
  v1::Buffer narrow = Range(v1::InputValues::UNIFORM, 0, 3e-45);  // of f32 there is one number between
  narrow.set_data_type(v1::F32);
  for (double entry : Entries(narrow)) EXPECT_EQ(static_cast<float>(entry), 1.4e-45f);
}

TEST(RuleOfTest, PositiveInputsStayPositiveInEveryPattern) {
  v1::Buffer input = Matrix(v1::InputValues::DEFAULT, 20, 30);
  input.set_domain(v1::POSITIVE);
  for (int kind = 0; kind <= static_cast<int>(Kind::kClass); ++kind)
    for (bool small : {false, true})
      for (double entry :
           Entries(input, {.kind = static_cast<Kind>(kind), .small = small, .step = 8, .phase = 3}))
        EXPECT_GT(entry, 0) << kind;
}

TEST(RuleOfTest, PeaksAreBeyondAllOtherEntries) {
  for (v1::ValueDomain domain : {v1::REAL, v1::POSITIVE})
    for (bool small : {false, true}) {
      v1::Buffer input = Matrix(v1::InputValues::DEFAULT, 20, 30);
      input.set_domain(domain);
      const std::vector<double> last = Entries(input, {.kind = Kind::kLast, .small = small}),
                                first = Entries(input, {.kind = Kind::kFirst, .small = small}),
                                some = Entries(input,
                                               {.kind = Kind::kClass, .small = small, .step = 8, .phase = 3});
      std::vector<double> peaks[3], others[3];
      for (int64_t i = 0; i < input.count(); ++i) {
        const int64_t row = i / 30, column = i % 30;
        (row == 19 || column == 29 ? peaks : others)[0].push_back(last[i]);
        (row == 0 || column == 0 ? peaks : others)[1].push_back(first[i]);
        (i % 8 == 3 ? peaks : others)[2].push_back(some[i]);
      }
      for (int k = 0; k < 3; ++k) {
        const auto [lowest_peak, highest_peak] = std::minmax_element(peaks[k].begin(), peaks[k].end());
        const auto [lowest, highest] = std::minmax_element(others[k].begin(), others[k].end());
        if (small) {
          EXPECT_LT(*highest_peak, *lowest);
        } else {
          EXPECT_GT(*lowest_peak, *highest);
        }
      }
    }
}

TEST(RuleOfTest, ScalarsAreHalvesThatAreNeitherZeroNorOne) {
  for (v1::ValueDomain domain : {v1::REAL, v1::POSITIVE})
    for (uint64_t key = 0; key < 100; ++key) {
      v1::Buffer input;
      input.set_count(1);
      input.set_data_type(v1::F32);
      input.set_by_value(true);
      input.set_domain(domain);
      const double scalar = InputEntry(RuleOf(input, {.kind = Kind::kWhole}), key, 0);
      EXPECT_EQ(std::abs(std::fmod(scalar, 1)), 0.5);
      if (domain == v1::POSITIVE) {
        EXPECT_GT(scalar, 0);
      }
    }
}

TEST(ClassPatternsTest, ShowEachLaneOfAResultOfOneEntryAndNoneWhereThereAreManyEntries) {
  v1::Session session;
  EXPECT_TRUE(ClassPatterns(session, 256).empty());
  session.set_choosing_entries(1);
  for (int64_t at_once : {1, 2, 4}) {
    std::set<int64_t> lanes[2];
    for (const DataPattern& pattern : ClassPatterns(session, 96)) {
      EXPECT_EQ(pattern.step, 4 * 96);
      lanes[pattern.small].insert(pattern.phase / at_once % 96);
    }
    EXPECT_EQ(lanes[0].size(), 96u);
    EXPECT_EQ(lanes[1].size(), 96u);
  }
  session.set_choosing_entries(1000000);
  EXPECT_TRUE(ClassPatterns(session, 256).empty());
}

TEST(ClassPatternsTest, TheFirstFewShowLanesOfEveryPartOfGroupsOfAnySize) {
  v1::Session session;
  session.set_choosing_entries(1);
  for (int64_t lanes : {128, 256, 512, 1024}) {
    const std::vector<DataPattern> patterns = ClassPatterns(session, lanes);
    for (int64_t tile = 64; tile <= 4 * lanes; tile *= 2) {
      std::set<int64_t> eighths;
      for (size_t i = 0; i < 128 && i < patterns.size(); ++i)
        if (!patterns[i].small) eighths.insert(patterns[i].phase % tile * 8 / tile);
      EXPECT_EQ(eighths.size(), 8u) << lanes << " lanes, tiles of " << tile;
    }
  }
}

}  // namespace
}  // namespace fusion
