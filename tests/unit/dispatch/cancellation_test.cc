#include "server/dispatch/cancellation.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

namespace fusion {
namespace {

TEST(CancellationTokenTest, CopiesShareTheFlag) {
  CancellationToken token;
  const CancellationToken copy = token;
  EXPECT_FALSE(copy.cancelled());
  token.Cancel();
  EXPECT_TRUE(copy.cancelled());
  EXPECT_FALSE(CancellationToken().cancelled());
}

TEST(CancellationTokenTest, CallbacksRunOnce) {
  CancellationToken token;
  int calls = 0;
  const auto registration = token.OnCancel([&] { ++calls; });
  token.Cancel();
  token.Cancel();
  EXPECT_EQ(calls, 1);
}

TEST(CancellationTokenTest, ALateCallbackRunsAtOnce) {
  CancellationToken token;
  token.Cancel();
  int calls = 0;
  const auto registration = token.OnCancel([&] { ++calls; });
  EXPECT_EQ(calls, 1);
}

TEST(CancellationTokenTest, AnEndedRegistrationIsNotCalled) {
  CancellationToken token;
  int calls = 0;
  {
    const auto registration = token.OnCancel([&] { ++calls; });
  }
  token.Cancel();
  EXPECT_EQ(calls, 0);
}

TEST(CancellationTokenTest, ManyThreadsMayCancel) {
  CancellationToken token;
  std::atomic<int> calls = 0;
  const auto registration = token.OnCancel([&] { ++calls; });
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([token]() mutable { token.Cancel(); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace fusion
