#include "client/partition/ranges.h"

#include <gtest/gtest.h>

#include <tuple>
#include <vector>

#include "tests/unit/partition/test_site.h"

namespace fusion {
namespace {

constexpr int64_t kAddress = 1 << 20;

struct Found {
  bool is_found;
  LoopRanges ranges;
  const ArrayRange& array() const { return ranges.arrays()[0]; }
};

Found Find(const std::vector<TestAccess>& accesses, int64_t first, int64_t last) {
  TestSite site(nullptr, {reinterpret_cast<void*>(kAddress)}, accesses, {}, 0);
  Found found;
  found.is_found = found.ranges.Find(*site.get(), site.facts(), first, last);
  return found;
}

void ExpectRange(ByteRange range, int64_t first, int64_t last) {
  EXPECT_EQ(range.first, first);
  EXPECT_EQ(range.last, last);
}

TEST(LoopRangesTest, BothDirections) {
  ExpectRange(Find({{0, kRead, 16, 8, 24, 8}}, 3, 10).array().all, 40, 96);
  ExpectRange(Find({{0, kRead, 160, -8, 168, -8}}, 3, 10).array().all, 88, 144);
  // A triangle: row i has i + 1 elements, each row 800 bytes.
  ExpectRange(Find({{0, kRead, 0, 800, 8, 808}}, 0, 100).array().all, 0, 99 * 808 + 8);
}

TEST(LoopRangesTest, ReadAndWrittenApart) {
  const Found found = Find(
      {{0, kRead, 0, 0, 8, 0}, {0, kWritten, 80, 8, 88, 8}, {0, kRead | kWritten, 400, 0, 404, 0}}, 0, 4);
  ExpectRange(found.array().read, 0, 404);
  ExpectRange(found.array().written, 80, 404);
  ExpectRange(found.array().all, 0, 404);
}

TEST(LoopRangesTest, NoIterationsTouchNothing) {
  EXPECT_TRUE(Find({{0, kWritten, 0, 8, 8, 8}}, 5, 5).array().all.empty());
  EXPECT_TRUE(Find({{0, kWritten, 8, 8, 8, 8}}, 0, 5).array().all.empty());
  EXPECT_TRUE(Find({{0, kWritten, 80, 8, 8, 8}}, 0, 5).array().all.empty());
  // The last iterations alone touch something.
  ExpectRange(Find({{0, kWritten, 16, 0, 0, 8}}, 0, 5).array().all, 16, 32);
}

// All small lines, against the bytes themselves.
TEST(LoopRangesTest, WhatIsWholeIsTouchedAndWhatIsTouchedIsInRange) {
  int whole = 0;
  for (int64_t c1 = -3; c1 <= 3; ++c1)
    for (int64_t d0 = -2; d0 <= 4; ++d0)
      for (int64_t d1 = -3; d1 <= 3; ++d1)
        for (int64_t last = 1; last <= 5; ++last) {
          const Found found = Find({{0, kWritten, 0, c1, d0, d1}}, 0, last);
          ASSERT_TRUE(found.is_found);
          const ByteRange all = found.array().all;
          std::vector<bool> touched(100, false);
          for (int64_t i = 0; i < last; ++i)
            for (int64_t byte = c1 * i; byte < d0 + d1 * i; ++byte) {
              touched[static_cast<size_t>(byte + 50)] = true;
              ASSERT_TRUE(all.first <= byte && byte < all.last);
            }
          if (!found.ranges.IsWrittenWhole(0)) continue;
          ++whole;
          for (int64_t byte = all.first; byte < all.last; ++byte)
            ASSERT_TRUE(touched[static_cast<size_t>(byte + 50)])
                << c1 << " " << d0 << " " << d1 << " " << last;
        }
  EXPECT_GT(whole, 200);
}

TEST(LoopRangesTest, ContiguousAccessesAreWhole) {
  EXPECT_TRUE(Find({{0, kWritten, 0, 8, 8, 8}}, 0, 100).ranges.IsWrittenWhole(0));
  EXPECT_TRUE(Find({{0, kWritten, 800, -8, 808, -8}}, 0, 100).ranges.IsWrittenWhole(0));
  EXPECT_FALSE(Find({{0, kWritten, 0, 16, 8, 16}}, 0, 100).ranges.IsWrittenWhole(0));
  EXPECT_FALSE(Find({{0, kWritten | kPartial, 0, 8, 8, 8}}, 0, 100).ranges.IsWrittenWhole(0));
  const std::vector<TestAccess> even_and_odd = {{0, kWritten, 0, 16, 8, 16}, {0, kWritten, 8, 16, 16, 16}};
  EXPECT_FALSE(Find(even_and_odd, 0, 100).ranges.IsWrittenWhole(0)) << "not known, which is safe";
  const std::vector<TestAccess> halves = {{0, kWritten, 80, 8, 88, 8}, {0, kWritten, 0, 8, 8, 8}};
  EXPECT_TRUE(Find(halves, 0, 10).ranges.IsWrittenWhole(0));
  EXPECT_FALSE(Find(halves, 0, 9).ranges.IsWrittenWhole(0));
  const std::vector<TestAccess> read_between = {
      {0, kWritten, 0, 8, 8, 8}, {0, kRead, 80, 8, 88, 8}, {0, kWritten, 160, 8, 168, 8}};
  EXPECT_FALSE(Find(read_between, 0, 10).ranges.IsWrittenWhole(0));
  EXPECT_TRUE(Find(read_between, 0, 10).ranges.IsTouchedWhole(0));
}

TEST(LoopRangesTest, FarRangesAreNone) {
  EXPECT_FALSE(Find({{0, kRead, 0, INT64_MAX, 8, INT64_MAX}}, 0, INT64_MAX).is_found);
  EXPECT_FALSE(Find({{0, kRead, INT64_MIN, INT64_MIN, 8, 8}}, 0, INT64_MAX).is_found);
  EXPECT_FALSE(Find({{0, kRead, -kAddress - 1, 0, 8, 0}}, 0, 1).is_found);
  EXPECT_TRUE(Find({{0, kRead, -kAddress, 0, 8, 0}}, 0, 1).is_found);
  EXPECT_FALSE(Find({{0, kRead, 0, 0, (int64_t{1} << 62) - kAddress + 1, 0}}, 0, 1).is_found);
}

TEST(LoopRangesTest, UnboundedAccessesAreInNoRange) {
  const Found alone = Find({{0, kRead | kUnbounded, 0, 0, 0, 0}}, 0, 4);
  EXPECT_TRUE(alone.is_found);
  EXPECT_TRUE(alone.array().is_unbounded);
  EXPECT_TRUE(alone.array().all.empty());
  const Found both = Find({{0, kRead, 16, 8, 24, 8}, {0, kRead | kUnbounded, 0, 0, 0, 0}}, 0, 4);
  EXPECT_TRUE(both.array().is_unbounded);
  ExpectRange(both.array().read, 16, 48);
  EXPECT_FALSE(Find({{0, kRead | kUnbounded, 0, 0, 0, 0}, {0, kWritten, 0, 8, 8, 8}}, 0, 4).is_found);
  EXPECT_FALSE(Find({{0, kRead, 0, 8, 8, 8}}, 0, 4).array().is_unbounded);
}

TEST(LoopRangesTest, PairsMeetWhereOneIsWritten) {
  const auto meet = [](int64_t distance, uint32_t first_flags, uint32_t second_flags) {
    TestSite site(nullptr, {reinterpret_cast<void*>(kAddress), reinterpret_cast<void*>(kAddress + distance)},
                  {{0, first_flags, 0, 8, 8, 8}, {1, second_flags, 0, 8, 8, 8}}, {}, 0, {{0, 1}});
    LoopRanges ranges;
    EXPECT_TRUE(ranges.Find(*site.get(), site.facts(), 0, 10));
    return PairsMeet(*site.get(), ranges.arrays());
  };
  for (const auto& [first, second] :
       {std::tuple(kRead, kWritten), std::tuple(kWritten, kRead), std::tuple(kWritten, kWritten)}) {
    EXPECT_FALSE(meet(80, first, second));
    EXPECT_TRUE(meet(79, first, second));
    EXPECT_TRUE(meet(0, first, second));
    EXPECT_TRUE(meet(-79, first, second));
    EXPECT_FALSE(meet(-80, first, second));
  }
  EXPECT_FALSE(meet(0, kRead, kRead));
}

}  // namespace
}  // namespace fusion
