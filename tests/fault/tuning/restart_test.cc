// A server that is killed and started again while a program tunes: nothing that it acknowledged is lost or
// counted twice, and the program never waits. FUSION_LONG_TESTS=1: a hundred times.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "client/tuner/clock.h"
#include "client/tuner/fusion_tuner.h"
#include "tests/fault/long_form.h"
#include "tests/integration/tuning_server.h"

namespace fusion::testing {
namespace {

using tuning::NowNanoseconds;

constexpr uint64_t kStall = 1'000'000;

uint64_t ThreadNanoseconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
}

// This thread has waited so often for something, as a lock, a message or the disk, and has touched so many
// pages that were not there yet: for one of them it may wait until another thread has mapped its memory.
struct Waits {
  int64_t waits = 0, page_faults = 0;
};
Waits WaitsOfThread() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return {usage.ru_nvcsw, usage.ru_minflt + usage.ru_majflt};
}

struct Stalls {
  uint64_t calls = 0;
  int64_t waits = 0;
  uint64_t over_by_wall = 0, over = 0;
  uint64_t longest_by_wall = 0, longest = 0;  // nanoseconds

  // What the call took of the clock, and what of that is its own: no more than this thread's time on a
  // processor (on shared cores the clock contains what others took), and no more than the clock (a virtual
  // machine may charge a thread with time in which the whole machine stood still).
  template <typename Call>
  void Time(Call call) {
    const Waits before = WaitsOfThread();
    const uint64_t processor = ThreadNanoseconds(), wall = NowNanoseconds();
    call();
    const uint64_t wall_time = NowNanoseconds() - wall;
    const uint64_t own = std::min(wall_time, ThreadNanoseconds() - processor);
    const Waits after = WaitsOfThread();
    if (after.page_faults == before.page_faults) waits += after.waits - before.waits;
    ++calls;
    over_by_wall += wall_time > kStall;
    over += own > kStall;
    longest_by_wall = std::max(longest_by_wall, wall_time);
    longest = std::max(longest, own);
  }
};

TEST(TuningRestartTest, NothingAcknowledgedIsLostAndNoCallWaits) {
  const int rounds = Count(5, 100);
  ClientProgram client;
  TuningServer server(client);
  fusion_tuner_options options;
  fusion_tuner_options_init(&options);
  options.server = server.address().c_str();
  options.program = "restart";
  options.device_class = "simulated";
  options.notice = [](const char*, void*) {};
  fusion_tuner* tuner = nullptr;
  ASSERT_EQ(fusion_tuner_create(&options, &tuner), FUSION_TUNER_OK) << fusion_tuner_message();
  fusion_tuner_section* section = nullptr;
  fusion_tuner_parameter *tile = nullptr, *stages = nullptr;
  ASSERT_EQ(fusion_tuner_section_create(tuner, "loop", &section), FUSION_TUNER_OK);
  ASSERT_EQ(fusion_tuner_integer_range(tuner, "tile", 0, 1000, 1, &tile), FUSION_TUNER_OK);
  ASSERT_EQ(fusion_tuner_power_of_two(tuner, "stages", 1, 64, &stages), FUSION_TUNER_OK);
  ASSERT_EQ(fusion_tuner_section_parameter(section, tile), FUSION_TUNER_OK);
  ASSERT_EQ(fusion_tuner_section_parameter(section, stages), FUSION_TUNER_OK);
  ASSERT_EQ(fusion_tuner_section_declare(section), FUSION_TUNER_OK) << fusion_tuner_message();

  auto counters = [&] {
    fusion_tuner_counters_t counters{};
    counters.size = sizeof(counters);
    EXPECT_EQ(fusion_tuner_counters(tuner, &counters), FUSION_TUNER_OK);
    return counters;
  };
  std::atomic<bool> done{false};
  // The loop that the program runs between its calls takes twenty times as long as they do: beside it the
  // figure of long calls says how much of them is the machine's.
  Stalls stalls, between;
  std::thread program([&] {
    // Of a first call a thread's memory is made, so it is not counted.
    fusion_tuner_next(section);
    fusion_tuner_cancel(section);
    while (!done) {
      const fusion_tuner_value* values = nullptr;
      stalls.Time([&] { values = fusion_tuner_next(section); });
      stalls.Time([&] { fusion_tuner_start(section); });
      // About 20 us, and longer for what is further from the best.
      const uint64_t until = NowNanoseconds() + 20'000 +
                             static_cast<uint64_t>(std::abs(values[0].integer - 333)) * 20 +
                             static_cast<uint64_t>(values[1].integer) * 50;
      between.Time([&] {
        while (NowNanoseconds() < until) {
        }
      });
      stalls.Time([&] { fusion_tuner_stop(section); });
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  });

  for (int round = 0; round < rounds; ++round) {
    const uint64_t before = counters().acknowledged;
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (counters().acknowledged < before + 20 && std::chrono::steady_clock::now() < patience)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    ASSERT_GE(counters().acknowledged, before + 20) << "round " << round;
    server.Kill();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    server.StartAgain();
  }
  done = true;
  program.join();
  ASSERT_EQ(fusion_tuner_flush(tuner, 20), FUSION_TUNER_OK) << fusion_tuner_message();
  const fusion_tuner_counters_t end = counters();
  EXPECT_EQ(end.acknowledged + end.dropped, end.reported);
  EXPECT_EQ(end.reconnections, static_cast<uint64_t>(rounds));
  EXPECT_EQ(server.StoredReports().runs, end.acknowledged) << "each exactly once";
  EXPECT_EQ(stalls.waits, 0) << "a call waited";
  std::printf(
      "%d restarts: %llu runs, %llu acknowledged, %llu dropped; of %llu calls %llu took over 1 ms by the "
      "clock (longest %.3f ms), "
      "%llu by their own time (longest %.3f ms); between them %llu\n",
      rounds, static_cast<unsigned long long>(end.reported),
      static_cast<unsigned long long>(end.acknowledged), static_cast<unsigned long long>(end.dropped),
      static_cast<unsigned long long>(stalls.calls), static_cast<unsigned long long>(stalls.over_by_wall),
      static_cast<double>(stalls.longest_by_wall) * 1e-6, static_cast<unsigned long long>(stalls.over),
      static_cast<double>(stalls.longest) * 1e-6, static_cast<unsigned long long>(between.over));
  TellFigure("server killed", rounds);
  TellFigure("calls over 1 ms of the thread's own time", static_cast<double>(stalls.over));
  fusion_tuner_destroy(tuner);
}

}  // namespace
}  // namespace fusion::testing
