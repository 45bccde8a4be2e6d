// The smaller parts of the library, each by itself.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "client/partition/array_copies.h"
#include "client/partition/loop_work.h"
#include "client/partition/pool.h"
#include "client/partition/readable.h"
#include "client/partition/simulated_device.h"
#include "client/partition/ways.h"

namespace fusion {
namespace {

TEST(ReadableTest, StopsAtMemoryThatIsNotThere) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  char* const memory =
      static_cast<char*>(mmap(nullptr, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  for (size_t i = 0; i < 3 * page; ++i) memory[i] = static_cast<char>(i % 101);
  std::vector<char> copy(3 * page);
  EXPECT_TRUE(CopyReadable(copy.data(), memory, 3 * page));
  EXPECT_EQ(std::memcmp(copy.data(), memory, 3 * page), 0);
  EXPECT_TRUE(CopyReadable(copy.data(), nullptr, 0));
  ASSERT_EQ(mprotect(memory + page, page, PROT_NONE), 0);
  EXPECT_TRUE(CopyReadable(copy.data(), memory + 1, page - 1));
  EXPECT_FALSE(CopyReadable(copy.data(), memory + 1, page));
  EXPECT_FALSE(CopyReadable(copy.data(), memory, 3 * page));
  munmap(memory, 3 * page);
}

TEST(SimulatedDeviceTest, MemoryEndsAndIsPoisoned) {
  SimulatedDevice device({.memory_bytes = 1000});
  const uint64_t first = device.Allocate(600);
  ASSERT_NE(first, 0u);
  EXPECT_EQ(first % PartitionDevice::kAlignment, 0u);
  EXPECT_EQ(device.Allocate(401), 0u);
  EXPECT_NE(device.Allocate(400), 0u);
  device.Free(first);
  const uint64_t again = device.Allocate(600);
  ASSERT_NE(again, 0u);
  int number = 5;
  ASSERT_EQ(device.Upload(again + 8, &number, sizeof(number), HostCopies(nullptr), false), Copied::kAll);
  unsigned char bytes[16];
  ASSERT_TRUE(device.Download(bytes, again, sizeof(bytes)));
  EXPECT_EQ(bytes[7], 0xA5);
  EXPECT_EQ(bytes[8], 5);
  EXPECT_EQ(bytes[12], 0xA5);
  SimulatedDevice unlimited({});
  EXPECT_EQ(unlimited.Allocate(SIZE_MAX), 0u);
  EXPECT_EQ(unlimited.Allocate(size_t{1} << 60), 0u);
}

TEST(SimulatedDeviceTest, OneRunFails) {
  SimulatedDevice device({.fault = 2});
  int64_t sum = 0;
  fusion_partition_site site{};
  site.body = [](int64_t first, int64_t last, void* context) {
    *static_cast<int64_t*>(context) += last - first;
  };
  EXPECT_TRUE(device.Run(site, 0, 3, &sum, nullptr, BlockShape()));
  EXPECT_FALSE(device.Run(site, 3, 5, &sum, nullptr, BlockShape()));
  EXPECT_TRUE(device.Run(site, 5, 6, &sum, nullptr, BlockShape()));
  EXPECT_EQ(sum, 4);
}

TEST(ArrayCopiesTest, CopiesAreAlignedAsTheArraysAre) {
  SimulatedDevice device({.memory_bytes = 4000});
  std::vector<ArrayRange> arrays(3);
  for (int64_t i = 0; i < 3; ++i) arrays[static_cast<size_t>(i)].address = 100000 + 8 * i;
  arrays[0].all = {-40, 160};
  arrays[2].all = {1 << 20, (1 << 20) + 1000};
  int64_t context[4] = {100000, 100024, 100016, 7};
  const int64_t facts[] = {100000, 100008, 100016};
  fusion_partition_site site{};
  const fusion_partition_pointer pointers[] = {{0, 0}, {8, 0}, {16, 1}};
  site.context_bytes = sizeof(context);
  site.pointers = 3;
  site.pointer = pointers;
  {
    ArrayCopies copies(device);
    ASSERT_TRUE(copies.Allocate(arrays));
    for (const uint32_t i : {0, 2})
      EXPECT_EQ(copies.At(i, 0) % PartitionDevice::kAlignment,
                static_cast<uint64_t>(arrays[i].address) % PartitionDevice::kAlignment);
    const auto* translated = static_cast<const uint64_t*>(copies.Translate(site, context, facts));
    EXPECT_EQ(translated[0], copies.At(0, 0));
    EXPECT_EQ(translated[1], copies.At(0, 24));
    EXPECT_EQ(translated[2], 100016u) << "nothing of the array is touched";
    EXPECT_EQ(translated[3], 7u);
    EXPECT_EQ(device.Allocate(3000), 0u);
  }
  EXPECT_NE(device.Allocate(4000), 0u) << "all is free again";
}

TEST(HostPoolTest, EachIterationRunsOnce) {
  HostPool pool(4);
  EXPECT_EQ(pool.threads(), 4);
  const auto body = [](int64_t first, int64_t last, void* context) {
    for (int64_t i = first; i < last; ++i)
      ++(*static_cast<std::vector<int>*>(context))[static_cast<size_t>(i)];
  };
  for (const int64_t first : {0, 1, 7, 990, 999, 1000})
    for (int round = 0; round < 20; ++round) {
      std::vector<int> runs(1000, 0);
      pool.Begin(body, &runs, first, 1000);
      pool.Finish();
      for (int64_t i = 0; i < 1000; ++i) ASSERT_EQ(runs[static_cast<size_t>(i)], i < first ? 0 : 1);
    }
}

TEST(HostPoolTest, AsManyThreadsTakePartAsAreAskedFor) {
  HostPool pool(4);
  struct Seen {
    std::mutex mutex;
    std::set<std::thread::id> threads;
  };
  const auto body = [](int64_t, int64_t, void* context) {
    Seen& seen = *static_cast<Seen*>(context);
    const std::lock_guard<std::mutex> lock(seen.mutex);
    seen.threads.insert(std::this_thread::get_id());
  };
  for (int round = 0; round < 100; ++round)
    for (const int most : {1, 3, 0, 2}) {
      Seen seen;
      pool.Begin(body, &seen, 0, 1000, most);
      pool.Finish();
      EXPECT_LE(seen.threads.size(), static_cast<size_t>(std::max(most, 1)));
      if (most <= 1) {
        EXPECT_EQ(seen.threads, std::set<std::thread::id>{std::this_thread::get_id()});
      }
    }
}

TEST(HostPoolTest, TheLastIterationsOfAllAreNoneTooMany) {
  HostPool pool(3);
  std::atomic<int64_t> sum{0};
  pool.Begin([](int64_t first, int64_t last,
                void* context) { *static_cast<std::atomic<int64_t>*>(context) += last - first; },
             &sum, 1, INT64_MAX);
  pool.Finish();
  EXPECT_EQ(sum, INT64_MAX - 1);
}

TEST(HostPoolTest, ThreadsTakeFaultsAlone) {
  HostPool pool(2);
  struct Seen {
    std::atomic<int> threads{0}, blocked{0}, faults_blocked{0};
  } seen;
  // The calling thread waits for the other one, so that each has a slice.
  const auto body = [](int64_t, int64_t, void* context) {
    Seen& seen = *static_cast<Seen*>(context);
    sigset_t signals;
    pthread_sigmask(SIG_SETMASK, nullptr, &signals);
    seen.blocked += sigismember(&signals, SIGTERM);
    seen.faults_blocked += sigismember(&signals, SIGSEGV);
    ++seen.threads;
    while (seen.threads < 2) std::this_thread::yield();
  };
  pool.Begin(body, &seen, 0, 2);
  pool.Finish();
  EXPECT_EQ(seen.blocked, 1) << "this thread takes signals";
  EXPECT_EQ(seen.faults_blocked, 0);
}

TEST(LoopWorkTest, IterationsOfATriangleAreAsLongAsTheyAre) {
  // Iteration i has 3 + 2 * i instructions, or 201 - 2 * i.
  for (const auto& [constant, slope] : {std::pair(3.0, 2.0), std::pair(201.0, -2.0), std::pair(5.0, 0.0)}) {
    double all = 0, some = 0;
    for (int i = 0; i < 100; ++i) {
      all += constant + slope * i;
      if (i >= 20 && i < 50) some += constant + slope * i;
    }
    const LoopWork work(all, constant, 100);
    EXPECT_NEAR(work.Of(0, 100), all, 1e-9 * all);
    EXPECT_NEAR(work.Of(20, 50), some, 1e-9 * all);
  }
  for (const double first : {-1.0, std::nan(""), 1e30, HUGE_VAL}) {
    const LoopWork work(1000, first, 100);
    EXPECT_NEAR(work.Of(0, 100), 1000, 1e-6);
    EXPECT_GE(work.Of(99, 100), 0);
  }
  EXPECT_EQ(LoopWork(7, 7, 1).Of(0, 1), 7);
}

TEST(WaysTest, TheFasterWayIsUsedAndTheOtherTriedNowAndThen) {
  for (const Way faster : {Way::kOneThread, Way::kThreads}) {
    Ways ways;
    std::array<int, 2> calls = {};
    for (int call = 0; call < 1000; ++call) {
      const Way way = ways.Next(true);
      if (call < 2 * Ways::kFirstTries) {
        EXPECT_EQ(static_cast<int>(way), call / Ways::kFirstTries);
      }
      ++calls[static_cast<size_t>(way)];
      ways.Saw(way, 1e6, way == faster ? 0.01 : 0.02);
    }
    // The other way takes a hundredth of the time beyond.
    EXPECT_GT(calls[static_cast<size_t>(faster)], 980);
    for (const int count : calls) EXPECT_GE(count, Ways::kFirstTries + 4);
  }
}

TEST(WaysTest, AWayThatIsNotThereIsNotTaken) {
  Ways ways;
  for (int call = 0; call < 200; ++call) {
    const Way way = ways.Next(call >= 100);
    EXPECT_TRUE(way == Way::kOneThread || (call >= 100 && way == Way::kThreads));
    ways.Saw(way, 1e6, 0.01);
  }
  EXPECT_EQ(ways.HostSeconds(2e6), 0.02);
}

TEST(WaysTest, TheFirstCallOnADeviceIsNoMeasure) {
  Ways ways;
  ways.Saw(Way::kDevice, 1e9, 5);
  EXPECT_EQ(ways.Seconds(Way::kDevice, 1e9), 0);
  ways.Saw(Way::kDevice, 1e9, 0.1);
  EXPECT_EQ(ways.Seconds(Way::kDevice, 2e9), 0.2);
}

TEST(WaysTest, AWayThatTakesLongerThanExpectedIsLeft) {
  Ways ways;
  ways.Saw(ways.Next(true), 1e9, 0.1);
  ways.Saw(ways.Next(true), 1e9, 0.2);
  EXPECT_EQ(ways.Next(true), Way::kOneThread);
  EXPECT_EQ(ways.Seconds(Way::kOneThread, 2e9), 0.2);
  ways.Exceeded(Way::kOneThread, 5e8, 0.3);
  EXPECT_EQ(ways.Next(true), Way::kThreads);
}

TEST(WaysTest, LongCallsAreTriedOnce) {
  Ways ways;
  for (const Way expected : {Way::kOneThread, Way::kThreads, Way::kThreads}) {
    EXPECT_EQ(ways.Next(true), expected);
    ways.Saw(expected, 1e9, expected == Way::kThreads ? 1 : 4);
  }
}

TEST(WaysTest, ALoopThatChangesIsFollowed) {
  Ways ways;
  for (int call = 0; call < 100; ++call) {
    const Way way = ways.Next(true);
    ways.Saw(way, 1e6, way == Way::kThreads ? 0.01 : 0.02);
  }
  int calls_of_threads = 0;
  for (int call = 0; call < 2000; ++call) {
    const Way way = ways.Next(true);
    if (call >= 1000) calls_of_threads += way == Way::kThreads;
    ways.Saw(way, 1e6, way == Way::kThreads ? 0.04 : 0.02);
  }
  EXPECT_LT(calls_of_threads, 25);
}

}  // namespace
}  // namespace fusion
