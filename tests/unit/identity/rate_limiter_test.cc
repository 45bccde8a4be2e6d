#include "server/identity/rate_limiter.h"

#include <gtest/gtest.h>

#include <vector>

namespace fusion {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(RateLimiterTest, ABurstThenTheRate) {
  RateLimiter limiter;
  const RateLimit limit{10, 3};
  const RateLimiter::Time start{seconds(1000)};
  for (int i = 0; i < 3; ++i) EXPECT_EQ(limiter.Take("eva", limit, start).count(), 0);
  EXPECT_NEAR(limiter.Take("eva", limit, start).count(), 0.1, 1e-9);
  EXPECT_NEAR(limiter.Take("eva", limit, start + milliseconds(60)).count(), 0.04, 1e-9);
  EXPECT_EQ(limiter.Take("eva", limit, start + milliseconds(101)).count(), 0);
  EXPECT_GT(limiter.Take("eva", limit, start + milliseconds(101)).count(), 0);
  EXPECT_EQ(limiter.Take("max", limit, start).count(), 0) << "a bucket of his own";
  // A rest fills up to the burst, not more.
  for (int i = 0; i < 3; ++i) EXPECT_EQ(limiter.Take("eva", limit, start + seconds(100)).count(), 0);
  EXPECT_GT(limiter.Take("eva", limit, start + seconds(100)).count(), 0);
}

TEST(RateLimiterTest, ForgettingBucketsForgivesNothing) {
  RateLimiter limiter;
  const RateLimit limit{0.001, 1};
  const RateLimiter::Time start{seconds(1000)};
  EXPECT_EQ(limiter.Take("eva", limit, start).count(), 0);
  for (int i = 0; i < 5000; ++i)
    EXPECT_EQ(limiter.Take(std::to_string(i), {1e9, 10}, start + seconds(1)).count(), 0);
  EXPECT_GT(limiter.Take("eva", limit, start + seconds(2)).count(), 0);
}

TEST(ConcurrencyLimiterTest, TicketsEnd) {
  std::shared_ptr<void> late;
  {
    ConcurrencyLimiter limiter;
    std::shared_ptr<void> first = limiter.Enter("eva", 2), second = limiter.Enter("eva", 2);
    EXPECT_TRUE(first && second);
    EXPECT_EQ(limiter.Enter("eva", 2), nullptr);
    EXPECT_NE(limiter.Enter("max", 2), nullptr);
    first.reset();
    late = limiter.Enter("eva", 2);
    EXPECT_NE(late, nullptr);
    EXPECT_EQ(limiter.Enter("none", 0), nullptr);
  }
  late.reset();  // after the limiter
}

}  // namespace
}  // namespace fusion
