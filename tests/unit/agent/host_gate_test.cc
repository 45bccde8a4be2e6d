#include "worker/agent/host_gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

namespace fusion {
namespace {

TEST(HostGateTest, ATimingIsAlone) {
  HostGate gate;
  std::atomic<int> shared{0}, alone{0};
  std::atomic<bool> violated{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 300; ++k) {
        const HostGate::Pass pass = gate.EnterShared({});
        ++shared;
        if (alone > 0) violated = true;
        std::this_thread::yield();
        --shared;
      }
    });
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 100; ++k) {
        const HostGate::Pass pass = gate.EnterAlone({});
        if (++alone != 1 || shared > 0) violated = true;
        std::this_thread::yield();
        --alone;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(violated);
}

TEST(HostGateTest, SharersDoNotWaitForEachOther) {
  HostGate gate;
  const HostGate::Pass first = gate.EnterShared({});
  const HostGate::Pass second = gate.EnterShared({});
  EXPECT_TRUE(first);
  EXPECT_TRUE(second);
}

TEST(HostGateTest, AWaitingTimingKeepsNewWorkOutAndItsStopLetsItIn) {
  HostGate gate;
  std::optional<HostGate::Pass> build(gate.EnterShared({}));
  std::stop_source stop_timing;
  bool timed = true;
  std::thread timing([&] { timed = static_cast<bool>(gate.EnterAlone(stop_timing.get_token())); });
  std::atomic<bool> entered{false};
  std::thread late([&] {
    // Until the timing waits this may get in at once, which is right too.
    const HostGate::Pass pass = gate.EnterShared({});
    entered = static_cast<bool>(pass);
  });
  stop_timing.request_stop();
  timing.join();
  late.join();
  EXPECT_FALSE(timed);
  EXPECT_TRUE(entered);
}

TEST(HostGateTest, AStoppedWaitGivesNoPass) {
  HostGate gate;
  const HostGate::Pass timing = gate.EnterAlone({});
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(gate.EnterShared(stop.get_token()));
  EXPECT_FALSE(gate.EnterAlone(stop.get_token()));
}

}  // namespace
}  // namespace fusion
