#include "client/partition/host_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/partition/test_site.h"

namespace fusion::host_run_test {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kPrivate = FUSION_PARTITION_PRIVATE;
constexpr int64_t kLength = 37;  // of what each iteration writes of the private array
constexpr int64_t kMargin = 5;   // elements around it that nobody may change

// scratch points behind the address of its array, as pointers do that were computed before a loop.
struct Context {
  double *scratch, *result;
  int64_t iterations;
  // Where the private array was, by iterations.
  std::set<double*>* places;
  std::mutex* mutex;
};

void Body(int64_t first, int64_t last, void* context) {
  const Context& c = *static_cast<Context*>(context);
  {
    std::lock_guard<std::mutex> lock(*c.mutex);
    c.places->insert(c.scratch);
  }
  for (int64_t i = first; i < last; ++i) {
    for (int64_t j = 0; j < kLength; ++j) c.scratch[j] = static_cast<double>(i * 31 + j);
    // Another thread that has the same array writes it now.
    std::this_thread::yield();
    double sum = 0;
    for (int64_t j = kLength; j-- > 0;) sum = sum * 0.5 + c.scratch[j];
    c.result[i] = sum;
  }
}

class LoopWithPrivateArray {
 public:
  explicit LoopWithPrivateArray(int64_t iterations,
                                std::vector<TestAccess> of_scratch = {{0, kWritten, 0, 0, 8 * kLength, 0},
                                                                      {0, kRead, 0, 0, 8 * kLength, 0}},
                                fusion_partition_body body = Body)
      : scratch(kLength + 2 * kMargin, -1),
        result(static_cast<size_t>(iterations)),
        context_{scratch.data() + kMargin, result.data(), iterations, &places, &mutex_},
        site_(body, {scratch.data() + kMargin, result.data()}, Accesses(std::move(of_scratch)),
              {{offsetof(Context, scratch), 0}, {offsetof(Context, result), 1}}, sizeof(Context)) {}

  void Sequential() { site_.get()->body(0, context_.iterations, &context_); }
  int Enter(Partitioner& partitioner) { return site_.Enter(partitioner, context_.iterations, &context_); }
  fusion_partition_site* site() { return site_.get(); }
  bool IsAsIn(const LoopWithPrivateArray& other) const {
    return scratch == other.scratch && result == other.result;
  }
  double* place() { return scratch.data() + kMargin; }

  std::vector<double> scratch, result;
  std::set<double*> places;

 private:
  static std::vector<TestAccess> Accesses(std::vector<TestAccess> of_scratch) {
    for (TestAccess& access : of_scratch) access.flags |= kPrivate;
    of_scratch.push_back({1, kWritten, 0, 8, 8, 8});
    return of_scratch;
  }

  std::mutex mutex_;
  Context context_;
  TestSite site_;
};

PartitionSettings OnThreads(int threads) {
  PartitionSettings settings;
  settings.mode = PartitionMode::kHost;
  settings.threads = threads;
  return settings;
}

TEST(HostRunTest, EachThreadHasPrivateArraysAndTheLastIterationsAreLeft) {
  for (const int64_t iterations : {1, 2, 3, 16, 1037})
    for (const int threads : {1, 2, 3, 8}) {
      SCOPED_TRACE(std::to_string(iterations) + " iterations, threads " + std::to_string(threads));
      LoopWithPrivateArray expected(iterations), run(iterations);
      expected.Sequential();
      Partitioner partitioner(OnThreads(threads));
      for (int time = 0; time < 5; ++time) {
        std::fill_n(run.place(), kLength, time);
        ASSERT_EQ(run.Enter(partitioner), 1);
        EXPECT_TRUE(run.IsAsIn(expected));
      }
      // With one thread, and for one iteration, it is the array itself.
      EXPECT_EQ(run.places.count(run.place()), iterations == 1 || threads == 1 ? 1U : 0U);
      for (double* place : run.places)
        EXPECT_EQ(reinterpret_cast<uintptr_t>(place) % 64, reinterpret_cast<uintptr_t>(run.place()) % 64);
    }
}

TEST(HostRunTest, ALoopWithPrivateArraysRunsOnTheHostAlone) {
  LoopWithPrivateArray expected(500);
  expected.Sequential();
  for (const double split : {0.0, 0.3, 1.0})
    for (const PartitionMode mode : {PartitionMode::kDevice, PartitionMode::kCheck}) {
      PartitionSettings settings = OnSimulatedDevice(split);
      settings.mode = mode;
      Partitioner partitioner(settings);
      LoopWithPrivateArray run(500);
      ASSERT_EQ(run.Enter(partitioner), 1);
      EXPECT_TRUE(run.IsAsIn(expected));
      EXPECT_THAT(partitioner.Report(), HasSubstr("split 0% device, host threads 3"));
    }
}

// In mode auto calls begin on one thread, in the array itself, and others do the rest.
TEST(HostRunTest, PartsOfACallFollowEachOther) {
  LoopWithPrivateArray expected(1037);
  expected.Sequential();
  PartitionSettings settings;
  settings.mode = PartitionMode::kAuto;
  settings.threads = 3;
  settings.tuner = false;
  settings.earned_seconds = 1e-5;
  Partitioner partitioner(settings);
  LoopWithPrivateArray run(1037);
  for (int time = 0; time < 20; ++time) {
    std::fill_n(run.place(), kLength, time);
    ASSERT_EQ(run.Enter(partitioner), 1);
    EXPECT_TRUE(run.IsAsIn(expected));
  }
  EXPECT_GT(run.places.size(), 1U);
}

TEST(HostRunTest, BytesThatNoIterationWritesStay) {
  // Element 10 is between what is written.
  const std::vector<TestAccess> accesses = {{0, kWritten, 0, 0, 80, 0},
                                            {0, kWritten | kRead, 88, 0, 8 * kLength, 0},
                                            {0, kWritten | kPartial, 96, 0, 120, 0}};
  const auto body = [](int64_t first, int64_t last, void* context) {
    const Context& c = *static_cast<Context*>(context);
    for (int64_t i = first; i < last; ++i) {
      for (int64_t j = 0; j < kLength; ++j)
        if (j != 10) c.scratch[j] = static_cast<double>(i + j);
      c.result[i] = c.scratch[i % 10];
    }
  };
  LoopWithPrivateArray expected(300, accesses, body), run(300, accesses, body);
  expected.Sequential();
  Partitioner partitioner(OnThreads(3));
  ASSERT_EQ(run.Enter(partitioner), 1);
  EXPECT_TRUE(run.IsAsIn(expected));
}

TEST(HostRunTest, OneThreadDoesWhatIsNotKnownToBeWrittenOrTooLarge) {
  for (const TestAccess& access : {TestAccess{0, kWritten | kPartial, 0, 0, 8 * kLength, 0},  // some of it
                                   TestAccess{0, kWritten, 0, 0, int64_t{1} << 30, 0}}) {
    LoopWithPrivateArray expected(200, {access}), run(200, {access});
    expected.Sequential();
    Partitioner partitioner(OnThreads(3));
    ASSERT_EQ(run.Enter(partitioner), 1);
    EXPECT_TRUE(run.IsAsIn(expected));
    EXPECT_EQ(run.places, std::set<double*>{run.place()});
  }
}

// Sums of several threads would go to several contexts.
TEST(HostRunTest, OneThreadDoesALoopThatSumsUp) {
  LoopWithPrivateArray expected(200), run(200);
  expected.Sequential();
  run.site()->sums = 1;
  Partitioner partitioner(OnThreads(3));
  ASSERT_EQ(run.Enter(partitioner), 1);
  EXPECT_TRUE(run.IsAsIn(expected));
  EXPECT_EQ(run.places, std::set<double*>{run.place()});
}

// A site that is wrong: iterations read what they have not written.
TEST(HostRunTest, TheCheckSeesWrongSites) {
  const auto body = [](int64_t first, int64_t last, void* context) {
    const Context& c = *static_cast<Context*>(context);
    for (int64_t i = first; i < last; ++i) {
      c.result[i] = c.scratch[0];
      for (int64_t j = 0; j < kLength; ++j) c.scratch[j] = static_cast<double>(i + 1);
    }
  };
  PartitionSettings settings = OnSimulatedDevice(0);
  settings.mode = PartitionMode::kCheck;
  Partitioner partitioner(settings);
  const std::vector<TestAccess> accesses = {{0, kWritten | kRead, 0, 0, 8 * kLength, 0}};
  LoopWithPrivateArray run(300, accesses, body), untouched(300, accesses, body);
  EXPECT_EQ(run.Enter(partitioner), 0);
  EXPECT_TRUE(run.IsAsIn(untouched));
}

}  // namespace
}  // namespace fusion::host_run_test
