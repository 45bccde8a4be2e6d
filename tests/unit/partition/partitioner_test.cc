#include "client/partition/partitioner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pmmintrin.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/unit/partition/test_site.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kIterations = 1037;
constexpr int64_t kRows = 5;

// All loops of these tests have this context. The arrays are as long as any of the loops wants.
struct Context {
  double *a, *b, *c;
  int64_t n;
};
constexpr uint32_t kA = offsetof(Context, a), kB = offsetof(Context, b), kC = offsetof(Context, c);

struct Arrays {
  static constexpr size_t kLength = kRows * kIterations + 64;
  Arrays() : a(kLength), b(kLength), c(kLength) {
    for (size_t i = 0; i < kLength; ++i) {
      a[i] = static_cast<double>(i * 7919 % 1000) / 8;
      b[i] = static_cast<double>(i * 104729 % 1000) / 4;
      c[i] = -static_cast<double>(i);
    }
  }
  bool operator==(const Arrays& other) const { return a == other.a && b == other.b && c == other.c; }
  std::vector<double> a, b, c;
};

struct Loop {
  const char* name;
  fusion_partition_body body;
  std::vector<TestAccess> accesses;
  int64_t offset = 0;  // of the context's pointer to a, in elements
};

template <class Iteration>
void ForEach(int64_t first, int64_t last, void* context, Iteration iteration) {
  const Context& c = *static_cast<Context*>(context);
  for (int64_t i = first; i < last; ++i) iteration(c, i);
}

constexpr int64_t kN8 = 8 * kIterations;

const std::vector<Loop>& Loops() {
  static const auto* loops = new std::vector<Loop>{
      {"out of place",
       [](int64_t first, int64_t last, void* context) {
         ForEach(first, last, context, [](const Context& c, int64_t i) { c.b[i] = 2 * c.a[i] + 1; });
       },
       {{0, kRead, 0, 8, 8, 8}, {1, kWritten, 0, 8, 8, 8}}},
      {"in place",
       [](int64_t first, int64_t last, void* context) {
         ForEach(first, last, context, [](const Context& c, int64_t i) { c.a[i] = c.a[i] * c.a[i] - 3; });
       },
       {{0, kRead | kWritten, 0, 8, 8, 8}}},
      {"columns",
       [](int64_t first, int64_t last, void* context) {
         ForEach(first, last, context, [](const Context& c, int64_t i) {
           for (int64_t row = 0; row < kRows; ++row) c.a[row * c.n + i] += c.b[i] * static_cast<double>(row);
         });
       },
       {{0, kRead | kWritten | kPartial, 0, 8, (kRows - 1) * kN8 + 8, 8}, {1, kRead, 0, 8, 8, 8}}},
      {"every other element, written only",
       [](int64_t first, int64_t last, void* context) {
         ForEach(first, last, context,
                 [](const Context& c, int64_t i) { c.a[2 * i] = static_cast<double>(i); });
       },
       {{0, kWritten, 0, 16, 8, 16}}},
      {"some iterations",
       [](int64_t first, int64_t last, void* context) {
         ForEach(first, last, context, [](const Context& c, int64_t i) {
           if (c.a[i] > 50) c.b[i] = c.a[i];
         });
       },
       {{0, kRead, 0, 8, 8, 8}, {1, kWritten | kPartial, 0, 8, 8, 8}}},
      {"two writes that enclose each other",
       [](int64_t first, int64_t last, void* context) {
         ForEach(first, last, context, [](const Context& c, int64_t i) {
           c.b[i] = c.a[i];
           c.b[i + c.n] = -c.a[i];
         });
       },
       {{0, kRead, 0, 8, 8, 8}, {1, kWritten, 0, 8, 8, 8}, {1, kWritten, kN8, 8, kN8 + 8, 8}}},
      {"backwards",
       [](int64_t first, int64_t last, void* context) {
         ForEach(first, last, context,
                 [](const Context& c, int64_t i) { c.b[c.n - 1 - i] = c.a[3 * (c.n - 1 - i)]; });
       },
       {{0, kRead, 3 * (kN8 - 8), -24, 3 * (kN8 - 8) + 8, -24}, {1, kWritten, kN8 - 8, -8, kN8, -8}}},
      {"several accesses",
       [](int64_t first, int64_t last, void* context) {
         ForEach(first, last, context, [](const Context& c, int64_t i) {
           double sum = c.a[i] + c.a[i + 2] + c.b[c.n - i];
           for (int64_t j = 0; j <= i; ++j) sum += c.b[j];
           c.c[i] += sum;
         });
       },
       {{0, kRead, 0, 8, 8, 8},
        {0, kRead, 16, 8, 24, 8},
        {1, kRead, kN8, -8, kN8 + 8, -8},
        {1, kRead, 0, 0, 8, 8},
        {2, kRead | kWritten, 0, 8, 8, 8}}},
      {"derived pointer",
       [](int64_t first, int64_t last, void* context) {
         ForEach(first, last, context, [](const Context& c, int64_t i) { c.a[i - 5] = c.a[i - 5] + c.b[i]; });
       },
       {{0, kRead | kWritten, 40, 8, 48, 8}, {1, kRead, 0, 8, 8, 8}},
       10},
      {"an inner loop without iterations",
       [](int64_t first, int64_t last, void* context) {
         ForEach(first, last, context, [](const Context& c, int64_t i) { c.b[i] += 1; });
       },
       {{0, kRead | kWritten, 80, 8, 80, 8}, {1, kRead | kWritten, 0, 8, 8, 8}}},
  };
  return *loops;
}

class RunOfLoop {
 public:
  explicit RunOfLoop(const Loop& loop, std::vector<fusion_partition_pair> pairs = {})
      : site_(loop.body, {arrays.a.data(), arrays.b.data(), arrays.c.data()}, loop.accesses,
              {{kA, 0}, {kB, 1}, {kC, 2}}, sizeof(Context), std::move(pairs)),
        context_{arrays.a.data() + loop.offset, arrays.b.data(), arrays.c.data(), kIterations} {}
  void Sequential() { site_.get()->body(0, kIterations, &context_); }
  int Enter(Partitioner& partitioner, double work = 1e6) {
    return site_.Enter(partitioner, kIterations, &context_, work);
  }
  fusion_partition_site* site() { return site_.get(); }

  Arrays arrays;

 private:
  TestSite site_;
  Context context_;
};

const Loop& InPlace() { return Loops()[1]; }

std::string Split(int percent) { return "split " + std::to_string(percent) + "% device"; }

TEST(PartitionerTest, ResultsAreThoseOfTheSequentialLoop) {
  for (const Loop& loop : Loops()) {
    RunOfLoop expected(loop);
    expected.Sequential();
    for (const double split : {0.0, 0.3, 0.7, 1.0})
      for (const int chunks : {1, 4, 16}) {
        SCOPED_TRACE(std::string(loop.name) + ", " + std::to_string(split) + ", " + std::to_string(chunks));
        Partitioner partitioner(OnSimulatedDevice(split, chunks));
        RunOfLoop run(loop, {{0, 1}, {1, 2}, {0, 2}});
        ASSERT_EQ(run.Enter(partitioner), 1);
        EXPECT_TRUE(run.arrays == expected.arrays);
        EXPECT_THAT(partitioner.Report(), HasSubstr(Split(static_cast<int>(split * 100 + 0.5))));
        EXPECT_THAT(partitioner.Report(),
                    HasSubstr("refused: conditions 0, overlap 0, busy 0, unreadable 0\n"));
      }
  }
}

TEST(PartitionerTest, AllIterationsRunOnceOnTheHost) {
  PartitionSettings settings = OnSimulatedDevice();
  settings.mode = PartitionMode::kHost;
  Partitioner partitioner(settings);
  RunOfLoop expected(InPlace()), run(InPlace());
  for (int i = 0; i < 20; ++i) {
    expected.Sequential();
    ASSERT_EQ(run.Enter(partitioner), 1);
  }
  EXPECT_TRUE(run.arrays == expected.arrays);
  EXPECT_THAT(partitioner.Report(),
              HasSubstr("loop.c:12:3 Loop: calls 20, split 0% device, host threads 3, seconds "));
}

TEST(PartitionerTest, FewerIterationsThanThreadsAndChunks) {
  for (int64_t iterations = 1; iterations <= 5; ++iterations) {
    Partitioner partitioner(OnSimulatedDevice(0.5, 16));
    std::vector<double> a(iterations, 1);
    Context context{a.data(), nullptr, nullptr, iterations};
    TestSite site(InPlace().body, {a.data()}, InPlace().accesses, {{kA, 0}}, sizeof(Context));
    ASSERT_EQ(site.Enter(partitioner, iterations, &context), 1);
    EXPECT_EQ(a, std::vector<double>(iterations, -2));
  }
}

TEST(PartitionerTest, ArraysThatMeetAreRefused) {
  std::vector<double> memory(2 * kIterations, 1);
  const std::vector<double> before = memory;
  const Loop& loop = Loops()[0];
  for (const int64_t distance : {int64_t{0}, int64_t{1}, kIterations - 1, kIterations}) {
    Partitioner partitioner(OnSimulatedDevice());
    double* const b = memory.data() + distance;
    Context context{memory.data(), b, nullptr, kIterations};
    TestSite site(loop.body, {memory.data(), b}, loop.accesses, {{kA, 0}, {kB, 1}}, sizeof(Context),
                  {{0, 1}});
    const bool meet = distance < kIterations;
    EXPECT_EQ(site.Enter(partitioner, kIterations, &context), meet ? 0 : 1) << distance;
    EXPECT_EQ(memory == before, meet) << distance;
    EXPECT_THAT(partitioner.Report(), HasSubstr(meet ? "overlap 1" : "overlap 0"));
  }
}

TEST(PartitionerTest, RangesThatAreNoneAreRefused) {
  for (const auto& [c0, c1, d0, d1] : std::vector<std::array<int64_t, 4>>{{0, INT64_MAX, 8, INT64_MAX},
                                                                          {INT64_MIN, 0, 8, 8},
                                                                          {0, 8, INT64_MAX, 8},
                                                                          {-(int64_t{1} << 50), 8, 8, 8}}) {
    Partitioner partitioner(OnSimulatedDevice());
    Loop loop = InPlace();
    loop.accesses = {{0, kRead | kWritten, c0, c1, d0, d1}};
    RunOfLoop run(loop);
    EXPECT_EQ(run.Enter(partitioner), 0);
    EXPECT_TRUE(run.arrays == Arrays());
    EXPECT_THAT(partitioner.Report(), HasSubstr("ranges 1"));
  }
}

TEST(PartitionerTest, TheHostDoesWhatTheDeviceCannot) {
  for (const Loop& loop : Loops()) {
    RunOfLoop expected(loop);
    expected.Sequential();
    for (int fault = 0; fault <= 3; ++fault) {
      SCOPED_TRACE(std::string(loop.name) + ", fault " + std::to_string(fault));
      PartitionSettings settings = OnSimulatedDevice(0.7);
      if (fault == 0) {
        settings.simulated.memory_bytes = 100;
      } else {
        settings.simulated.fault = fault;
      }
      Partitioner partitioner(settings);
      RunOfLoop run(loop);
      ASSERT_EQ(run.Enter(partitioner), 1);
      EXPECT_TRUE(run.arrays == expected.arrays);
      EXPECT_THAT(partitioner.Report(),
                  HasSubstr(fault == 0 ? "unreadable 0, memory 1\n" : "unreadable 0, fault 1\n"));
      EXPECT_THAT(partitioner.Report(), HasSubstr(Split(0)));
    }
  }
}

TEST(PartitionerTest, TheDevicesMemoryIsFreed) {
  PartitionSettings settings = OnSimulatedDevice(1.0);
  settings.simulated.memory_bytes = kN8 + 1000;
  Partitioner partitioner(settings);
  RunOfLoop run(InPlace());
  for (int i = 0; i < 3; ++i) ASSERT_EQ(run.Enter(partitioner), 1);
  EXPECT_THAT(partitioner.Report(), HasSubstr("calls 3, split 100% device"));
}

TEST(PartitionerTest, MemoryThatIsNotThereIsNotRead) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  char* const memory =
      static_cast<char*>(mmap(nullptr, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_EQ(munmap(memory + page, page), 0);
  // The loop changes the first page and the last one.
  const auto body = [](int64_t first, int64_t last, void* context) {
    char* const a = *static_cast<char**>(context);
    const int64_t page = sysconf(_SC_PAGESIZE);
    for (int64_t i = first; i < last; ++i)
      if (i < page || i >= 2 * page) a[i] += 1;
  };
  TestSite site(body, {memory}, {{0, kRead | kWritten | kPartial, 0, 1, 1, 1}}, {{0, 0}}, sizeof(char*));
  char* context = memory;
  for (const PartitionMode mode : {PartitionMode::kDevice, PartitionMode::kCheck}) {
    PartitionSettings settings = OnSimulatedDevice(0.9);
    settings.mode = mode;
    Partitioner partitioner(settings);
    site.get()->state = nullptr;
    EXPECT_EQ(site.Enter(partitioner, 3 * page, &context), mode == PartitionMode::kDevice ? 1 : 0);
    EXPECT_THAT(partitioner.Report(), HasSubstr("unreadable 1"));
    for (size_t i = 0; i < page; ++i) ASSERT_EQ(memory[i] + memory[2 * page + i], 2);
  }
  munmap(memory, page);
  munmap(memory + 2 * page, page);
}

struct Gate {
  std::promise<void> inside, may_end;
};

// An inner loop that does not run may seem to reach far behind its array. No copy of that is made.
TEST(PartitionerTest, RangesThatEndOutsideOfMemoryAreNotCopied) {
  std::vector<double> values(10, 1.0);
  double* pointer = values.data();
  constexpr int64_t kFar = int64_t{1} << 40;
  TestSite site(
      [](int64_t first, int64_t last, void* context) {
        for (int64_t i = first; i < last; ++i) ++(*static_cast<double**>(context))[i];
      },
      {pointer}, {{0, kRead | kWritten | kPartial, 0, 8, kFar, 8}}, {{0, 0}}, sizeof(pointer));
  for (const double split : {0.5, 1.0}) {
    PartitionSettings settings = OnSimulatedDevice(split);
    settings.simulated.memory_bytes = 0;  // it is not asked for any
    Partitioner partitioner(settings);
    ASSERT_EQ(site.Enter(partitioner, 10, &pointer), 1);
    EXPECT_THAT(partitioner.Report(), HasSubstr("unreadable 1\n"));
    site.get()->state = nullptr;
  }
  EXPECT_EQ(values, std::vector<double>(10, 3.0));
}

TEST(PartitionerTest, OneThreadAtATimeIsInside) {
  PartitionSettings settings = OnSimulatedDevice();
  settings.mode = PartitionMode::kHost;
  settings.threads = 1;
  Partitioner partitioner(settings);
  Gate gate;
  Gate* context = &gate;
  const auto wait = [](int64_t, int64_t, void* context) {
    Gate& gate = **static_cast<Gate**>(context);
    gate.inside.set_value();
    gate.may_end.get_future().wait();
  };
  TestSite waiting(wait, {}, {}, {}, sizeof(Gate*));
  std::thread other([&] { EXPECT_EQ(waiting.Enter(partitioner, 1, &context), 1); });
  gate.inside.get_future().wait();
  RunOfLoop run(InPlace());
  EXPECT_EQ(run.Enter(partitioner), 0);
  EXPECT_TRUE(run.arrays == Arrays());
  gate.may_end.set_value();
  other.join();
  EXPECT_EQ(run.Enter(partitioner), 1);
  EXPECT_THAT(partitioner.Report(), HasSubstr("busy 1"));
}

TEST(PartitionerTest, ManyThreadsRunTheirLoops) {
  Partitioner partitioner(OnSimulatedDevice());
  RunOfLoop expected(InPlace());
  for (int i = 0; i < 50; ++i) expected.Sequential();
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&] {
      RunOfLoop run(InPlace());
      for (int i = 0; i < 50; ++i)
        if (run.Enter(partitioner) == 0) run.Sequential();
      EXPECT_TRUE(run.arrays == expected.arrays);
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(PartitionerTest, ThreadsOfOneLoopCountInOnePlace) {
  Partitioner partitioner(OnSimulatedDevice());
  RunOfLoop first(InPlace());
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) partitioner.Refuse(first.site());
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(partitioner.Report(), HasSubstr("conditions 200,"));
}

TEST(PartitionerTest, ALoopInsideALoopRunsAsWritten) {
  struct Outer {
    Partitioner* partitioner;
    RunOfLoop* inner;
    int result;
  };
  Partitioner partitioner(OnSimulatedDevice(0.0));
  RunOfLoop inner(InPlace());
  Outer outer{&partitioner, &inner, -1};
  const auto body = [](int64_t, int64_t, void* context) {
    Outer& outer = *static_cast<Outer*>(context);
    outer.result = outer.inner->Enter(*outer.partitioner);
  };
  TestSite site(body, {}, {}, {}, sizeof(Outer));
  EXPECT_EQ(site.Enter(partitioner, 1, &outer), 1);
  EXPECT_EQ(outer.result, 0);
}

// Returns how a child of this process ends that runs `child`; -1 where it does not end in a minute.
int ExitStatusOfChild(const std::function<bool()>& child) {
  const pid_t process = fork();
  if (process == 0) {
    alarm(60);
    _exit(child() ? 0 : 1);
  }
  int status = 0;
  waitpid(process, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(PartitionerTest, AChildWithoutTheThreadsRunsItsLoopsItself) {
  Partitioner partitioner(OnSimulatedDevice());
  RunOfLoop run(InPlace());
  ASSERT_EQ(run.Enter(partitioner), 1);
  EXPECT_TRUE(partitioner.HasThreads());
  EXPECT_EQ(ExitStatusOfChild([&] {
              return run.Enter(partitioner) == 0 &&
                     partitioner.Report().find("forked 1") != std::string::npos;
            }),
            0);
  EXPECT_EQ(run.Enter(partitioner), 1);
}

TEST(PartitionerTest, AnotherRoundingIsRefused) {
  Partitioner partitioner(OnSimulatedDevice());
  RunOfLoop run(InPlace());
  ASSERT_EQ(run.Enter(partitioner), 1);
  const unsigned before = _mm_getcsr();
  _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
  EXPECT_EQ(run.Enter(partitioner), 0);
  _mm_setcsr(before | _MM_EXCEPT_INEXACT);
  EXPECT_EQ(run.Enter(partitioner), 1) << "what has happened is no way to round";
  _mm_setcsr(before);
  EXPECT_THAT(partitioner.Report(), HasSubstr("rounding 1"));
}

TEST(PartitionerTest, ThreadsAreMadeWhenTheLoopsHaveEarnedThem) {
  PartitionSettings settings = OnSimulatedDevice();
  settings.mode = PartitionMode::kAuto;
  settings.earned_seconds = 1e9;
  Partitioner poor(settings);
  RunOfLoop run(InPlace());
  for (int i = 0; i < 10; ++i) ASSERT_EQ(run.Enter(poor), 1);
  EXPECT_FALSE(poor.HasThreads());
  EXPECT_THAT(poor.Report(), HasSubstr("host threads 1,"));

  settings.earned_seconds = 0;
  Partitioner rich(settings);
  RunOfLoop expected(InPlace()), other(InPlace());
  for (int i = 0; i < 10; ++i) {
    expected.Sequential();
    ASSERT_EQ(other.Enter(rich), 1);
  }
  EXPECT_TRUE(rich.HasThreads());
  EXPECT_TRUE(other.arrays == expected.arrays);
}

TEST(PartitionerTest, ALongLoopEarnsItsThreadsWhileItRuns) {
  PartitionSettings settings = OnSimulatedDevice();
  settings.mode = PartitionMode::kAuto;
  settings.earned_seconds = 1e-9;  // less than the first part of any loop takes
  Partitioner partitioner(settings);
  RunOfLoop run(InPlace()), expected(InPlace());
  expected.Sequential();
  ASSERT_EQ(run.Enter(partitioner), 1);
  EXPECT_TRUE(run.arrays == expected.arrays);
  EXPECT_TRUE(partitioner.HasThreads());
  EXPECT_THAT(partitioner.Report(), HasSubstr("calls 1, split 0% device, host threads 3,"));
}

TEST(PartitionerTest, NothingRunsWhereItIsOff) {
  PartitionSettings settings;
  settings.mode = PartitionMode::kOff;
  Partitioner partitioner(settings);
  RunOfLoop run(InPlace());
  EXPECT_EQ(run.Enter(partitioner), 0);
  partitioner.Refuse(run.site());
  EXPECT_EQ(partitioner.Report(), "");
}

TEST(PartitionerTest, AnotherVersionIsRefused) {
  Partitioner partitioner(OnSimulatedDevice());
  RunOfLoop run(InPlace());
  run.site()->version = FUSION_PARTITION_VERSION + 1;
  EXPECT_EQ(run.Enter(partitioner), 0);
  EXPECT_EQ(run.site()->state, nullptr);
}

TEST(PartitionerTest, RefusedLoopsAreCounted) {
  Partitioner partitioner(OnSimulatedDevice());
  RunOfLoop run(InPlace());
  partitioner.Refuse(run.site());
  std::thread other([&] { partitioner.Refuse(run.site()); });
  partitioner.Refuse(run.site());
  other.join();
  EXPECT_THAT(partitioner.Report(),
              HasSubstr("calls 0, split 0% device, host threads 1, seconds 0.000000; refused: "
                        "conditions 3, overlap 0"));
}

// A nest of two arrays, `distance` numbers from each other.
struct Nest {
  explicit Nest(int64_t distance)
      : memory(2 * kIterations, 1),
        site(nullptr, {memory.data(), memory.data() + distance},
             {{0, kRead | kWritten, 0, 8, 8, 8}, {1, kRead, 0, 8, 8, 8}}, {}, 0, {{0, 1}}) {}
  std::vector<double> memory;
  TestSite site;
};

PartitionSettings OfThreads(PartitionMode mode, int threads) {
  PartitionSettings settings;
  settings.mode = mode;
  settings.threads = threads;
  settings.least_work = 1000;
  return settings;
}

TEST(PartitionerTest, NestsOfEnoughWorkRunInAnotherOrder) {
  Nest nest(kIterations);
  Partitioner partitioner(OfThreads(PartitionMode::kHost, 4));
  EXPECT_EQ(nest.site.Reorders(partitioner, kIterations, 99999), 0);
  EXPECT_EQ(nest.site.Reorders(partitioner, kIterations, 100000), 1);
  EXPECT_EQ(nest.site.Reorders(partitioner, 0, 100000), 0);
  EXPECT_THAT(partitioner.Report(), HasSubstr("Loop: reordered 1; refused: conditions 0, overlap 0"));
}

TEST(PartitionerTest, FewThreadsRunNestsAsWritten) {
  for (const auto& [mode, threads, reorders] :
       std::vector<std::tuple<PartitionMode, int, int>>{{PartitionMode::kHost, 3, 0},
                                                        {PartitionMode::kHost, 4, 1},
                                                        {PartitionMode::kAuto, 3, 0},
                                                        {PartitionMode::kAuto, 4, 1},
                                                        {PartitionMode::kDevice, 1, 1},
                                                        {PartitionMode::kCheck, 1, 1},
                                                        {PartitionMode::kOff, 16, 0}}) {
    Nest nest(kIterations);
    Partitioner partitioner(OfThreads(mode, threads));
    EXPECT_EQ(nest.site.Reorders(partitioner, kIterations, 1e12), reorders) << static_cast<int>(mode);
  }
}

TEST(PartitionerTest, NestsAreLongEnoughToEarnThreads) {
  Nest nest(kIterations);
  Partitioner partitioner(OfThreads(PartitionMode::kAuto, 16));
  EXPECT_EQ(nest.site.Reorders(partitioner, kIterations, 49999999), 0);
  EXPECT_EQ(nest.site.Reorders(partitioner, kIterations, 50000000), 1);
}

TEST(PartitionerTest, NestsOfArraysThatMeetRunAsWritten) {
  Nest nest(kIterations - 1);
  Partitioner partitioner(OfThreads(PartitionMode::kHost, 4));
  EXPECT_EQ(nest.site.Reorders(partitioner, kIterations, 1e12), 0);
  EXPECT_THAT(partitioner.Report(), HasSubstr("reordered 0; refused: conditions 0, overlap 1"));
}

PartitionSettings Checked() {
  PartitionSettings settings = OnSimulatedDevice();
  settings.mode = PartitionMode::kCheck;
  return settings;
}

TEST(PartitionerTest, RightLoopsPassTheCheck) {
  for (const Loop& loop : Loops()) {
    SCOPED_TRACE(loop.name);
    RunOfLoop expected(loop), run(loop);
    expected.Sequential();
    Partitioner partitioner(Checked());
    EXPECT_EQ(run.Enter(partitioner), 1);
    EXPECT_TRUE(run.arrays == expected.arrays);
  }
}

// The caller runs the loop as written when the check has found that the partitioned one is wrong.
void ExpectIsFoundWrong(const Loop& loop) {
  SCOPED_TRACE(loop.name);
  RunOfLoop run(loop);
  PartitionSettings settings = Checked();
  settings.threads = 1;  // wrong loops would race
  Partitioner partitioner(settings);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run.Enter(partitioner), 0);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("loop.c:12:3 Loop: the partitioned loop's results"));
  EXPECT_TRUE(run.arrays == Arrays());
  EXPECT_EQ(run.Enter(partitioner), 0) << "off for the rest of the process";
  EXPECT_THAT(partitioner.Report(), HasSubstr("wrong results 2"));
}

TEST(PartitionerTest, WrongLoopsAreFoundByTheCheck) {
  ExpectIsFoundWrong({"each iteration reads what the one before has written",
                      [](int64_t first, int64_t last, void* context) {
                        ForEach(first, last, context,
                                [](const Context& c, int64_t i) { c.a[i + 1] = c.a[i] + 1; });
                      },
                      {{0, kRead, 0, 8, 8, 8}, {0, kWritten, 8, 8, 16, 8}}});
  ExpectIsFoundWrong({"an access that is not named",
                      [](int64_t first, int64_t last, void* context) {
                        ForEach(first, last, context,
                                [](const Context& c, int64_t i) { c.b[i] = c.a[i] + c.a[i + 1]; });
                      },
                      {{0, kRead, 0, 8, 8, 8}, {1, kWritten, 0, 8, 8, 8}}});
}

// It reads b where a says, and b's first elements, too.
Loop ReadsAnywhere() {
  return {"reads anywhere",
          [](int64_t first, int64_t last, void* context) {
            ForEach(first, last, context, [](const Context& c, int64_t i) {
              c.c[i] = c.b[static_cast<int64_t>(c.a[i]) * 17] + c.b[i % 3];
            });
          },
          {{0, kRead, 0, 8, 8, 8},
           {1, kRead | kUnbounded, 0, 0, 0, 0},
           {1, kRead | kPartial, 0, 0, 24, 0},
           {2, kWritten, 0, 8, 8, 8}}};
}

TEST(PartitionerTest, UnboundedLoopsRunOnTheHost) {
  RunOfLoop expected(ReadsAnywhere());
  expected.Sequential();
  for (const PartitionMode mode : {PartitionMode::kDevice, PartitionMode::kCheck, PartitionMode::kHost}) {
    PartitionSettings settings = OnSimulatedDevice(0.7);
    settings.mode = mode;
    Partitioner partitioner(settings);
    RunOfLoop run(ReadsAnywhere(), {{0, 2}});
    ASSERT_EQ(run.Enter(partitioner), 1);
    EXPECT_TRUE(run.arrays == expected.arrays);
    EXPECT_THAT(partitioner.Report(), HasSubstr(Split(0)));
    EXPECT_THAT(partitioner.Report(),
                HasSubstr(mode == PartitionMode::kHost ? "unreadable 0\n" : "unreadable 0, unbounded 1\n"));
  }
}

TEST(PartitionerTest, TheCheckFindsWrongUnboundedLoops) {
  Loop loop = ReadsAnywhere();
  loop.body = [](int64_t first, int64_t last, void* context) {
    ForEach(first, last, context, [](const Context& c, int64_t i) { c.c[i] = ++c.b[i % 3] + c.a[i]; });
  };
  PartitionSettings settings = OnSimulatedDevice();
  settings.mode = PartitionMode::kCheck;
  settings.threads = 1;
  Partitioner partitioner(settings);
  RunOfLoop run(loop);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run.Enter(partitioner), 0) << "it writes what it only reads";
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("results were wrong"));
}

struct SumContext {
  char not_a_sum;
  int64_t sum;
};

// Adds up the numbers of its iterations, twice beyond the first slice where it is wrong.
template <bool kIsWrong>
void AddUp(int64_t first, int64_t last, void* context) {
  int64_t part = 0;
  for (int64_t i = first; i < last; ++i) part += i;
  if (kIsWrong && first > 0) part *= 2;
  __atomic_fetch_add(&static_cast<SumContext*>(context)->sum, part, __ATOMIC_RELAXED);
}

TEST(PartitionerTest, SumsAreOfAllIterationsAndOnTheHost) {
  for (const PartitionMode mode : {PartitionMode::kDevice, PartitionMode::kCheck, PartitionMode::kHost}) {
    PartitionSettings settings = OnSimulatedDevice(0.7);
    settings.mode = mode;
    Partitioner partitioner(settings);
    TestSite site(AddUp<false>, {}, {}, {}, sizeof(SumContext));
    site.get()->sums = 1;
    SumContext context{1, 5};
    ASSERT_EQ(site.Enter(partitioner, 1000, &context), 1);
    EXPECT_EQ(context.sum, 5 + 999 * 500);
    EXPECT_THAT(partitioner.Report(), HasSubstr(Split(0)));
  }
}

TEST(PartitionerTest, TheCheckFindsWrongSums) {
  Partitioner partitioner(Checked());
  TestSite site(AddUp<true>, {}, {}, {}, sizeof(SumContext));
  site.get()->sums = 1;
  SumContext context{1, 5};
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(site.Enter(partitioner, 1000, &context), 0);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("results were wrong"));
}

TEST(PartitionerTest, UnboundedArraysAreNotWritten) {
  Loop loop = ReadsAnywhere();
  loop.accesses[2].flags |= kWritten;
  Partitioner partitioner(OnSimulatedDevice());
  RunOfLoop run(loop);
  EXPECT_EQ(run.Enter(partitioner), 0);
  EXPECT_THAT(partitioner.Report(), HasSubstr("ranges 1"));
}

}  // namespace
}  // namespace fusion
