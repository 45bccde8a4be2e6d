// Arrays that stay on the device from loop to loop, and when they go there.
#include "client/partition/resident.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "client/partition/episode.h"
#include "client/partition/simulated_device.h"
#include "tests/unit/partition/test_site.h"

namespace fusion::resident_test {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kRows = 40, kColumns = 30, kBytes = kRows * kColumns * 8;

// Loops over matrices of kRows by kColumns, each of which reads `from` and writes `to`.
struct Context {
  const double* from;
  double* to;
};

double At(const double* matrix, int64_t row, int64_t column) { return matrix[row * kColumns + column]; }
double& At(double* matrix, int64_t row, int64_t column) { return matrix[row * kColumns + column]; }

struct Loop {
  int64_t iterations;
  fusion_partition_body body;
  std::vector<TestAccess> accesses;
};

constexpr int64_t kRow = kColumns * 8;

// A row each iteration, all of it.
void ScaleRows(int64_t first, int64_t last, void* context) {
  const Context& c = *static_cast<Context*>(context);
  for (int64_t i = first; i < last; ++i)
    for (int64_t j = 0; j < kColumns; ++j) At(c.to, i, j) = At(c.from, i, j) * 0.75 + 1;
}
// The inner points of a stencil: the elements at the edges lie between what is written.
void Stencil(int64_t first, int64_t last, void* context) {
  const Context& c = *static_cast<Context*>(context);
  for (int64_t i = first + 1; i < last + 1; ++i)
    for (int64_t j = 1; j < kColumns - 1; ++j)
      At(c.to, i, j) =
          0.25 * (At(c.from, i - 1, j) + At(c.from, i + 1, j) + At(c.from, i, j - 1) + At(c.from, i, j + 1));
}
// A column each iteration, of the upper rows.
void Columns(int64_t first, int64_t last, void* context) {
  const Context& c = *static_cast<Context*>(context);
  for (int64_t j = first; j < last; ++j)
    for (int64_t i = 0; i < kRows / 2; ++i) At(c.to, i, j) = At(c.to, i, j) + At(c.from, i, j);
}
// Some elements.
void WhereLarge(int64_t first, int64_t last, void* context) {
  const Context& c = *static_cast<Context*>(context);
  for (int64_t i = first; i < last; ++i)
    if (c.from[i] > 2) c.to[i] = -c.from[i];
}
// A triangle: rows of different lengths.
void Triangle(int64_t first, int64_t last, void* context) {
  const Context& c = *static_cast<Context*>(context);
  for (int64_t i = first; i < last; ++i)
    for (int64_t j = 0; j <= i; ++j) At(c.to, i, j) = At(c.from, i, j) - 0.5;
}

const std::vector<Loop>& Loops() {
  static const auto* loops = new std::vector<Loop>{
      {kRows, ScaleRows, {{0, kRead, 0, kRow, kRow, kRow}, {1, kWritten, 0, kRow, kRow, kRow}}},
      {kRows - 2,
       Stencil,
       {{0, kRead, 8, kRow, 3 * kRow - 8, kRow}, {1, kWritten, kRow + 8, kRow, 2 * kRow - 8, kRow}}},
      {kColumns,
       Columns,
       {{0, kRead | kPartial, 0, 8, (kRows / 2 - 1) * kRow + 8, 8},
        {1, kRead | kWritten | kPartial, 0, 8, (kRows / 2 - 1) * kRow + 8, 8}}},
      {kRows * kColumns - 7, WhereLarge, {{0, kRead, 0, 8, 8, 8}, {1, kWritten | kPartial, 0, 8, 8, 8}}},
      {kColumns, Triangle, {{0, kRead, 0, kRow, 8, kRow + 8}, {1, kWritten, 0, kRow, 8, kRow + 8}}},
  };
  return *loops;
}

// Matrices in one piece of memory, so that ranges of different loops meet in many ways.
class Program {
 public:
  static constexpr int64_t kLength = 4 * kRows * kColumns;

  explicit Program(unsigned seed) : random_(seed), memory_(kLength) {
    for (double& value : memory_) value = static_cast<double>(random_() % 1000) / 100;
    expected_ = memory_;
  }

  // Runs a loop on matrices that do not meet; the second begins with a step of any size behind the first.
  void RunLoop(Partitioner& partitioner) {
    const Loop& loop = Loops()[random_() % Loops().size()];
    const int64_t length = kRows * kColumns;
    int64_t from = static_cast<int64_t>(random_() % 3) * length / 2;
    int64_t to = from + length + static_cast<int64_t>(random_() % 3) * length / 2;
    if (random_() % 2 == 0) std::swap(from, to);
    Context expected{&expected_[static_cast<size_t>(from)], &expected_[static_cast<size_t>(to)]};
    loop.body(0, loop.iterations, &expected);
    Context context{&memory_[static_cast<size_t>(from)], &memory_[static_cast<size_t>(to)]};
    sites_.push_back(std::make_unique<TestSite>(
        loop.body, std::vector<void*>{const_cast<double*>(context.from), context.to}, loop.accesses,
        std::vector<fusion_partition_pointer>{{offsetof(Context, from), 0}, {offsetof(Context, to), 1}},
        sizeof(Context)));
    sites_.back()->get()->may_stay = 1;
    if (sites_.back()->Enter(partitioner, loop.iterations, &context) == 1) return;
    partitioner.Sync();
    loop.body(0, loop.iterations, &context);
  }
  // The program changes some element between two loops.
  void Touch(Partitioner& partitioner) {
    const size_t read = random_() % kLength, at = random_() % kLength;
    partitioner.Touch(&memory_[read], 8, false);
    ASSERT_EQ(memory_[read], expected_[read]);
    partitioner.Touch(&memory_[at], 8, true);
    memory_[at] = expected_[at] = static_cast<double>(random_() % 100);
  }
  void Look(Partitioner& partitioner) {
    partitioner.Sync();
    ASSERT_EQ(std::memcmp(memory_.data(), expected_.data(), kLength * sizeof(double)), 0);
  }
  unsigned Random(unsigned end) { return random_() % end; }

 private:
  std::mt19937 random_;
  std::vector<double> memory_, expected_;
  std::vector<std::unique_ptr<TestSite>> sites_;  // as long as the loops' records
};

TEST(ResidentArraysTest, AnySequenceOfLoopsHasTheResultsOfTheHost) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Program program(seed);
    Partitioner partitioner(OnSimulatedDevice(1));
    for (int touch = 0; touch < 4; ++touch) {
      for (unsigned loops = program.Random(9); loops > 0; --loops) program.RunLoop(partitioner);
      program.Touch(partitioner);
      if (touch % 2 == 1) program.Look(partitioner);
      if (::testing::Test::HasFatalFailure()) return;
    }
    EXPECT_EQ(partitioner.Report().find("split 0%"), std::string::npos);
  }
}

TEST(ResidentArraysTest, AfterAFaultTheHostHasTheResultsOfAllLoops) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Program program(seed);
    PartitionSettings settings = OnSimulatedDevice(1);
    settings.simulated.fault = 1 + program.Random(10);
    // Now and then there is too little memory, too.
    if (seed % 3 == 0) settings.simulated.memory_bytes = 3 * kBytes;
    Partitioner partitioner(settings);
    for (int touch = 0; touch < 4; ++touch) {
      for (unsigned loops = program.Random(9); loops > 0; --loops) program.RunLoop(partitioner);
      program.Touch(partitioner);
      if (touch % 2 == 1) program.Look(partitioner);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

// to[i] = from[i] + to[i], any number of times.
class SumLoop {
 public:
  explicit SumLoop(size_t length) : from(length, 1.0), to(length) { SetUp(to.data()); }
  // Adds to the array of another loop.
  explicit SumLoop(SumLoop& other) : from(other.to.size(), 1.0), to(other.to.size()) {
    SetUp(other.to.data());
  }
  int Enter(Partitioner& partitioner) {
    return site_->Enter(partitioner, static_cast<int64_t>(to.size()), &context_);
  }
  fusion_partition_site* site() { return site_->get(); }

  std::vector<double> from, to;

 private:
  void SetUp(double* target) {
    site_ = std::make_unique<TestSite>(
        [](int64_t first, int64_t last, void* context) {
          const Context& c = *static_cast<Context*>(context);
          for (int64_t i = first; i < last; ++i) c.to[i] += c.from[i];
        },
        std::vector<void*>{from.data(), target},
        std::vector<TestAccess>{{0, kRead, 0, 8, 8, 8}, {1, kRead | kWritten, 0, 8, 8, 8}},
        std::vector<fusion_partition_pointer>{{offsetof(Context, from), 0}, {offsetof(Context, to), 1}},
        sizeof(Context));
    site_->get()->may_stay = 1;
    context_ = {from.data(), target};
  }

  std::unique_ptr<TestSite> site_;
  Context context_;
};

TEST(ResidentArraysTest, ResultsAreStoredWhenTheyAreAskedFor) {
  Partitioner partitioner(OnSimulatedDevice(1));
  SumLoop loop(1000);
  for (int call = 0; call < 5; ++call) ASSERT_EQ(loop.Enter(partitioner), 1);
  EXPECT_EQ(loop.to[7], 0);
  EXPECT_EQ(fusion_partition_open, 1);
  EXPECT_LT(fusion_partition_least_work, 0);
  partitioner.Sync();
  EXPECT_EQ(loop.to, std::vector<double>(1000, 5.0));
  EXPECT_EQ(fusion_partition_open, 0);
  EXPECT_EQ(fusion_partition_least_work, partitioner.settings().least_work);
}

TEST(ResidentArraysTest, ResultsStayWhereOtherMemoryIsTouched) {
  Partitioner partitioner(OnSimulatedDevice(1));
  SumLoop loop(1000);
  const double other = 0;
  ASSERT_EQ(loop.Enter(partitioner), 1);
  partitioner.Touch(&other, 8, true);
  partitioner.Touch(&loop.from[3], 8, false);
  EXPECT_EQ(loop.to[7], 0);
  EXPECT_EQ(fusion_partition_open, 1);
  partitioner.Touch(&loop.to[999], 8, false);
  EXPECT_EQ(loop.to[7], 1);
  EXPECT_EQ(fusion_partition_open, 0);
  ASSERT_EQ(loop.Enter(partitioner), 1);
  partitioner.Touch(&loop.from[3], 8, true);
  EXPECT_EQ(loop.to[7], 2);
  // Many touches end it, so that a program that does much besides does not ask each time.
  ASSERT_EQ(loop.Enter(partitioner), 1);
  for (int i = 0; i < 256; ++i) partitioner.Touch(&other, 8, true);
  EXPECT_EQ(fusion_partition_open, 1);
  partitioner.Touch(&other, 8, true);
  EXPECT_EQ(fusion_partition_open, 0);
  EXPECT_EQ(loop.to[7], 3);
  loop.from[3] = 5;
  ASSERT_EQ(loop.Enter(partitioner), 1);
  partitioner.Sync();
  EXPECT_EQ(loop.to[3], 8);
}

TEST(ResidentArraysTest, ALoopWithoutSyncsIsStoredAtOnce) {
  Partitioner partitioner(OnSimulatedDevice(1));
  SumLoop loop(1000);
  loop.site()->may_stay = 0;
  ASSERT_EQ(loop.Enter(partitioner), 1);
  EXPECT_EQ(loop.to[7], 1);
  EXPECT_EQ(fusion_partition_open, 0);
}

TEST(ResidentArraysTest, MoreLoopsThanAreRememberedAreStoredBetween) {
  PartitionSettings settings = OnSimulatedDevice(1);
  settings.simulated.fault = 40'000;
  Partitioner partitioner(settings);
  SumLoop loop(100);
  for (int call = 0; call < 40'000; ++call) ASSERT_EQ(loop.Enter(partitioner), 1);
  partitioner.Sync();
  EXPECT_EQ(loop.to, std::vector<double>(100, 40'000.0));
  EXPECT_THAT(partitioner.Report(), HasSubstr("fault 1"));
}

TEST(ResidentArraysTest, LoopsMayComeToOtherMemoryEachTime) {
  Partitioner partitioner(OnSimulatedDevice(1));
  std::vector<std::unique_ptr<SumLoop>> loops;
  for (int i = 0; i < 500; ++i) loops.push_back(std::make_unique<SumLoop>(40));
  for (const auto& loop : loops) ASSERT_EQ(loop->Enter(partitioner), 1);
  for (const auto& loop : loops) ASSERT_EQ(loop->Enter(partitioner), 1);
  partitioner.Sync();
  for (const auto& loop : loops) EXPECT_EQ(loop->to, std::vector<double>(40, 2.0));
}

// The oldest copies go, and what later loops read is where it was.
TEST(ResidentArraysTest, CopiesThatAreOnlyReadMakeRoomForOthers) {
  PartitionSettings settings = OnSimulatedDevice(1);
  settings.simulated.fault = 302;
  Partitioner partitioner(settings);
  SumLoop first(40);
  std::vector<std::unique_ptr<SumLoop>> loops;
  for (int i = 0; i < 150; ++i) loops.push_back(std::make_unique<SumLoop>(first));
  for (int round = 0; round < 2; ++round)
    for (const auto& loop : loops) ASSERT_EQ(loop->Enter(partitioner), 1);
  EXPECT_EQ(first.to[7], 0);
  // The loops that read this one are repeated by the host after a fault, so it may not change before.
  partitioner.Touch(&loops[0]->from[7], 8, true);
  EXPECT_EQ(first.to[7], 300);
  loops[0]->from[7] = 10;
  for (int round = 0; round < 2; ++round) ASSERT_EQ(loops[0]->Enter(partitioner), 1);
  partitioner.Sync();
  EXPECT_EQ(first.to[7], 320);
  EXPECT_THAT(partitioner.Report(), HasSubstr("fault 1"));
}

class CountingDevice : public SimulatedDevice {
 public:
  CountingDevice() : SimulatedDevice(SimulatedDeviceSettings()) {}
  uint64_t Allocate(size_t bytes) override {
    ++allocations;
    return SimulatedDevice::Allocate(bytes);
  }
  bool Download(void* to, uint64_t from, size_t bytes) override {
    ++downloads;
    return SimulatedDevice::Download(to, from, bytes);
  }
  int allocations = 0, downloads = 0;
};

// As in a triangle, whose loops come to a further row each time, at the end or before the begin.
TEST(ResidentArraysTest, MemoryForARangeThatGrowsIsSeldomMadeAnew) {
  constexpr int64_t kLength = 3000;
  for (const bool is_downward : {false, true}) {
    CountingDevice device;
    HostPool pool(2);
    ResidentArrays resident(device, pool);
    std::vector<double> values(kLength);
    struct Add {
      double* to;
    };
    for (int64_t length = 1; length <= kLength; ++length) {
      Add context{values.data() + (is_downward ? kLength - length : 0)};
      TestSite site(
          [](int64_t first, int64_t last, void* of_call) {
            for (int64_t i = first; i < last; ++i) static_cast<Add*>(of_call)->to[i] += 1;
          },
          {context.to}, {{0, kRead | kWritten, 0, 8, 8, 8}}, {{offsetof(Add, to), 0}}, sizeof(Add));
      LoopRanges ranges;
      ASSERT_TRUE(ranges.Find(*site.get(), site.facts(), 0, length));
      const ResidentArrays::Result result =
          resident.Run(LoopCall{*site.get(), 0, length, &context, site.facts()}, ranges, BlockShape());
      ASSERT_FALSE(result.reason.has_value());
    }
    ASSERT_TRUE(resident.Store());
    for (int64_t i = 0; i < kLength; ++i)
      ASSERT_EQ(values[static_cast<size_t>(i)], is_downward ? i + 1 : kLength - i) << i;
    EXPECT_LE(device.allocations, 15);
  }
}

// As in a factorisation, which goes on with smaller and smaller squares, or with larger ones, or with
// triangles.
TEST(ResidentArraysTest, SquaresInSquaresAreStoredOnce) {
  constexpr int64_t kSize = 350;
  enum Shape { kSquare, kLower, kUpper };
  struct Square {
    double* at;
    int64_t size;
    Shape shape;
  };
  for (const auto& [grows, shape] :
       {std::pair(false, kSquare), std::pair(true, kSquare), std::pair(false, kLower),
        std::pair(false, kUpper), std::pair(true, kLower), std::pair(true, kUpper)}) {
    CountingDevice device;
    HostPool pool(2);
    ResidentArrays resident(device, pool);
    std::vector<double> values(kSize * kSize), expected = values;
    for (int64_t step = 1; step < kSize; ++step) {
      const int64_t first = grows ? kSize - step : step;
      Square context{values.data() + first * kSize + first, kSize - first, shape};
      const auto body = [](int64_t from, int64_t last, void* of_call) {
        const Square& square = *static_cast<Square*>(of_call);
        for (int64_t i = from; i < last; ++i)
          for (int64_t j = square.shape == kUpper ? i : 0; j < (square.shape == kLower ? i + 1 : square.size);
               ++j)
            square.at[i * kSize + j] += 1;
      };
      const int64_t begin_step = shape == kUpper ? 8 * kSize + 8 : 8 * kSize,
                    end = shape == kLower ? 8 : 8 * context.size,
                    end_step = shape == kLower ? 8 * kSize + 8 : 8 * kSize;
      TestSite site(body, {context.at}, {{0, kRead | kWritten, 0, begin_step, end, end_step}},
                    {{offsetof(Square, at), 0}}, sizeof(Square));
      LoopRanges ranges;
      ASSERT_TRUE(ranges.Find(*site.get(), site.facts(), 0, context.size));
      const ResidentArrays::Result result =
          resident.Run(LoopCall{*site.get(), 0, context.size, &context, site.facts()}, ranges, BlockShape());
      ASSERT_FALSE(result.reason.has_value());
      Square on_host{expected.data() + first * kSize + first, context.size, shape};
      body(0, context.size, &on_host);
    }
    EXPECT_EQ(device.downloads, 0);
    ASSERT_TRUE(resident.Store());
    EXPECT_EQ(device.downloads, 1);
    EXPECT_EQ(values, expected);
  }
}

TEST(ResidentArraysTest, AnotherThreadRunsItsLoopsItself) {
  Partitioner partitioner(OnSimulatedDevice(1));
  SumLoop loop(1000), other(1000);
  ASSERT_EQ(loop.Enter(partitioner), 1);
  std::thread([&] {
    EXPECT_EQ(other.Enter(partitioner), 0);
    partitioner.Sync();  // stores nothing of the first thread
  }).join();
  EXPECT_EQ(loop.to[7], 0);
  partitioner.Sync();
  EXPECT_EQ(loop.to[7], 1);
  EXPECT_THAT(partitioner.Report(), HasSubstr("busy 1"));
  std::thread([&] {
    EXPECT_EQ(other.Enter(partitioner), 1);
    partitioner.Sync();
  }).join();
  EXPECT_EQ(other.to[7], 1);
}

// As a handler of a signal does that comes while the loop runs.
TEST(ResidentArraysTest, AnAnswerToASignalDoesNotWaitForTheLoop) {
  static Partitioner* inside = nullptr;
  Partitioner partitioner(OnSimulatedDevice(1));
  inside = &partitioner;
  std::vector<double> values(100);
  double* pointer = values.data();
  TestSite site(
      [](int64_t first, int64_t last, void* context) {
        inside->Sync();
        for (int64_t i = first; i < last; ++i) ++(*static_cast<double**>(context))[i];
      },
      {pointer}, {{0, kRead | kWritten, 0, 8, 8, 8}}, {{0, 0}}, sizeof(pointer));
  site.get()->may_stay = 1;
  for (int call = 0; call < 3; ++call) ASSERT_EQ(site.Enter(partitioner, 100, &pointer), 1);
  EXPECT_EQ(values[5], 0);
  partitioner.Sync();
  EXPECT_EQ(values, std::vector<double>(100, 3.0));
}

// Elements between those that a loop writes are another thread's, which changes them meanwhile.
TEST(ResidentArraysTest, MemoryOfOthersIsNotChanged) {
  for (const uint32_t partial : {0u, kPartial}) {
    std::vector<double> values(1000, 1.0);
    double* pointer = values.data();
    TestSite site(
        [](int64_t first, int64_t last, void* context) {
          for (int64_t i = first; i < last; ++i) (*static_cast<double**>(context))[2 * i] = 7;
        },
        {pointer}, {{0, kWritten | partial, 0, 16, 8, 16}}, {{0, 0}}, sizeof(pointer));
    site.get()->may_stay = 1;
    Partitioner partitioner(OnSimulatedDevice(1));
    ASSERT_EQ(site.Enter(partitioner, 400, &pointer), 1);
    values[3] = values[901] = 5;
    partitioner.Sync();
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(values[i], i == 3 || i == 901 ? 5 : i % 2 == 0 && i < 800 ? 7 : 1) << i;
  }
}

LoopRanges RangesOf(SumLoop& loop) {
  LoopRanges ranges;
  const std::vector<int64_t> facts = {reinterpret_cast<int64_t>(loop.from.data()),
                                      reinterpret_cast<int64_t>(loop.to.data()),
                                      0,
                                      8,
                                      8,
                                      8,
                                      0,
                                      8,
                                      8,
                                      8};
  EXPECT_TRUE(ranges.Find(*loop.site(), facts.data(), 0, static_cast<int64_t>(loop.to.size())));
  return ranges;
}

// 24,000 bytes are copied, in 24 ms, beside what any copy takes.
TEST(EpisodeTest, CopiesArePaidForByWhatTheLoopsOfTheEpisodeSave) {
  SumLoop loop(1000);
  const LoopRanges ranges = RangesOf(loop);
  constexpr double kRate = 1e6;
  Episode episode;
  EpisodeHistory history;
  for (int call = 0; call < 2; ++call) {
    episode.Meet(ranges);
    EXPECT_FALSE(episode.IsWorthCopies(0.01, history, kRate));
    episode.Saves(0.01, false);
  }
  episode.Meet(ranges);
  EXPECT_TRUE(episode.IsWorthCopies(0.01, history, kRate));
  episode.Saves(0.01, false);
  // To be called back to the host, for a loop that runs there alone, has its price.
  episode.Copied(0.024);
  EXPECT_FALSE(episode.IsWorthCopies(0.01, history, kRate));
}

TEST(EpisodeTest, LoopsThatLoseMoreThanACopyLeaveTheDevice) {
  Episode episode;
  episode.Saves(-1, false);
  EXPECT_FALSE(episode.HasLost(0.5));
  for (int loop = 0; loop < 5; ++loop) episode.Saves(-0.1, true);
  EXPECT_FALSE(episode.HasLost(0.5 + 1e-9));
  episode.Saves(-0.1, true);
  EXPECT_TRUE(episode.HasLost(0.5 + 1e-9));
  episode.Saves(0.2, true);
  EXPECT_FALSE(episode.HasLost(0.5));
  episode.Left();
  EXPECT_FALSE(episode.HasLost(0));
}

TEST(EpisodeTest, LongEpisodesAreExpectedAgain) {
  SumLoop loop(1000);
  const LoopRanges ranges = RangesOf(loop);
  constexpr double kRate = 1e6;
  EpisodeHistory history;
  Episode episode;
  episode.Meet(ranges);
  EXPECT_FALSE(episode.IsWorthCopies(0.001, history, kRate));
  episode.Saves(1, false);
  episode.End(history, kRate);
  episode.Meet(ranges);
  EXPECT_TRUE(episode.IsWorthCopies(0.001, history, kRate));
  for (int time = 0; time < 10; ++time) {
    episode.Saves(0.001, false);
    episode.End(history, kRate);
    episode.Meet(ranges);
  }
  EXPECT_FALSE(episode.IsWorthCopies(0.001, history, kRate));
}

}  // namespace
}  // namespace fusion::resident_test
