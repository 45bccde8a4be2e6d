// The split that the tuner finds for loops whose times are a formula: a server in this process, nothing is
// measured.
#include "client/tuner/tuned_partition.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <thread>

namespace fusion {
namespace {

// Seconds of a run with this split: both parts at once, and a little for each chunk; chunks overlap copies
// with kernels.
struct SimulatedLoop {
  const char* name;
  int64_t n;
  double host_seconds;    // of all iterations
  double device_seconds;  // copies and kernels of all iterations, one after the other
  double launch_seconds;

  double Seconds(const Partition& split) const {
    const double share = static_cast<double>(split.device_iterations) / static_cast<double>(n);
    if (split.device_iterations == 0) return host_seconds;
    const double device =
        share * device_seconds * (0.5 + 0.5 / split.chunks) + (2 + split.chunks) * launch_seconds;
    return std::max(device, (1 - share) * host_seconds + split.chunks * launch_seconds / 4);
  }
  double CpuAlone() const { return Seconds({0, 1}); }
  double GpuAlone() const {
    double best = HUGE_VAL;
    for (int chunks = 1; chunks <= kMaxPartitionChunks; chunks *= 2)
      best = std::min(best, Seconds({n, chunks}));
    return best;
  }
};

class TunedPartitionTest : public ::testing::Test {
 protected:
  TunedPartitionTest() {
    data_ = std::filesystem::temp_directory_path() / ("tuned_partition_test." + std::to_string(getpid()));
    fusion_tuner_options options;
    fusion_tuner_options_init(&options);
    const std::string data = data_.string();
    options.server = "embedded";
    options.program = "test";
    options.device_class = "simulated";
    options.data_directory = data.c_str();
    options.exploration_share = 1;
    EXPECT_EQ(fusion_tuner_create(&options, &tuner_), FUSION_TUNER_OK) << fusion_tuner_message();
  }
  ~TunedPartitionTest() override {
    fusion_tuner_destroy(tuner_);
    std::filesystem::remove_all(data_);
  }

  // Runs until the ends have been compared with what was found; the number of runs.
  int Settle(const SimulatedLoop& loop, TunedPartition* split) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    int runs = 0;
    while (!split->Settled(loop.n) && std::chrono::steady_clock::now() < end) {
      split->Done(loop.Seconds(split->Next(loop.n)));
      EXPECT_EQ(split->message(), "");
      ++runs;
      // The library answers at once; a loop that takes time gives the server the time that it needs.
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_TRUE(split->Settled(loop.n)) << loop.name << " after " << runs << " runs";
    std::printf("%s, %lld iterations: %d runs\n", loop.name, static_cast<long long>(loop.n), runs);
    return runs;
  }

  std::filesystem::path data_;
  fusion_tuner* tuner_ = nullptr;
};

TEST_F(TunedPartitionTest, IsNotSlowerThanTheFasterEnd) {
  const SimulatedLoop loops[] = {
      {"device_much_faster", 2000, 50e-3, 5e-3, 1e-5},
      {"host_much_faster", 10000, 1e-3, 60e-3, 1e-5},
      {"both_alike", 1000000, 40e-3, 60e-3, 1e-5},
      {"little_work", 300, 2e-4, 2e-4, 1e-5},
  };
  for (const SimulatedLoop& loop : loops) {
    TunedPartition split(tuner_, loop.name);
    const int runs = Settle(loop, &split);
    const Partition best = split.Best(loop.n);
    const double faster = std::min(loop.CpuAlone(), loop.GpuAlone());
    EXPECT_LE(loop.Seconds(best), 1.03 * faster) << loop.name << ": " << best.device_iterations << " of "
                                                 << loop.n << " in " << best.chunks << " chunks";
    RecordProperty(loop.name, runs);
    std::printf("%s: %d runs, %lld of %lld in %d chunks, %.3f of the faster end\n", loop.name, runs,
                static_cast<long long>(best.device_iterations), static_cast<long long>(loop.n), best.chunks,
                loop.Seconds(best) / faster);
  }
}

TEST_F(TunedPartitionTest, OtherNumbersOfIterationsAreOtherSizesOfTheSection) {
  SimulatedLoop loop{"sizes", 5000, 50e-3, 5e-3, 1e-5};
  TunedPartition split(tuner_, loop.name, {{"columns", 7}});
  Settle(loop, &split);
  EXPECT_GT(split.Best(5000).device_iterations, 4000);
  // Few iterations: the host alone.
  loop = {"sizes", 40, 1e-5, 5e-3, 1e-4};
  Settle(loop, &split);
  EXPECT_EQ(split.Best(40).device_iterations, 0);
  EXPECT_GT(split.Best(5000).device_iterations, 4000);
}

TEST_F(TunedPartitionTest, ASectionThatCannotBeDeclaredLeavesAllToTheHost) {
  TunedPartition first(tuner_, "same"), second(tuner_, "same");
  first.Next(100);
  first.Failed();
  EXPECT_EQ(second.Next(100).device_iterations, 0);
  EXPECT_NE(second.message(), "");
  second.Done(1);
}

}  // namespace
}  // namespace fusion
