#include "client/tuner/host_threads.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace fusion {
namespace {

TEST(HostThreadsTest, EachIterationOnceInEveryRound) {
  for (int count : {1, 2, 5}) {
    HostThreads threads(count);
    for (int round = 0; round < 200; ++round) {
      std::vector<std::atomic<int>> done(round);
      auto body = [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ++done[i];
      };
      threads.Start(0, round, 1 + round % 7, body);
      threads.Finish();
      for (const auto& times : done) ASSERT_EQ(times, 1);
    }
  }
}

TEST(HostThreadsTest, TheFirstExceptionIsThrownAndTheNextRoundIsWhole) {
  HostThreads threads(3);
  auto throws = [](int64_t, int64_t) { throw std::runtime_error("no"); };
  threads.Start(0, 100, 1, throws);
  EXPECT_THROW(threads.Finish(), std::runtime_error);
  std::atomic<int64_t> sum{0};
  auto adds = [&](int64_t begin, int64_t end) { sum += end - begin; };
  threads.Start(0, 100, 3, adds);
  threads.Finish();
  EXPECT_EQ(sum, 100);
}

TEST(HostThreadsTest, AbandonedRoundsLeaveNothingRunning) {
  HostThreads threads(3);
  threads.Abandon();
  for (int round = 0; round < 100; ++round) {
    std::atomic<int> running{0};
    auto body = [&](int64_t, int64_t) {
      ++running;
      --running;
    };
    threads.Start(0, 1000, 1, body);
    threads.Abandon();
    ASSERT_EQ(running, 0);
  }
}

}  // namespace
}  // namespace fusion
