// Loops that run as a tuner, or an earlier process, has it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "client/partition/partitioner.h"
#include "client/partition/simulated_device.h"
#include "tests/unit/partition/test_site.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Always answers with one plan, and keeps what it is told.
class OnePlan : public LoopTuner {
 public:
  struct Told {
    int asked = 0, done = 0, failed = 0;
    std::vector<LoopPlan> known;
    LoopSpace space;
    double seconds = 0;
  };
  OnePlan(const LoopPlan& plan, Told& told) : plan_(plan), told_(told) {}

  LoopPlan Next(const LoopKey& key, int64_t iterations, double work, const LoopPlan& known,
                const LoopSpace& space) override {
    EXPECT_EQ(key.place, "loop.c:12:3");
    EXPECT_EQ(iterations, 60);
    EXPECT_EQ(work, 1e6);
    ++told_.asked;
    told_.known.push_back(known);
    told_.space = space;
    return plan_;
  }
  bool IsTrial() const override { return false; }
  void Done(double seconds) override {
    ++told_.done;
    told_.seconds = seconds;
  }
  void Failed() override { ++told_.failed; }
  void Finish() override {}

 private:
  const LoopPlan plan_;
  Told& told_;
};

// An iteration takes a millisecond on the host. On the device, which runs them all in the calling thread,
// none is slow.
thread_local bool t_is_device = false;

class FastDevice : public SimulatedDevice {
 public:
  using SimulatedDevice::SimulatedDevice;
  bool Run(const fusion_partition_site& site, int64_t first, int64_t last, void* context,
           const int64_t* facts, BlockShape block) override {
    t_is_device = true;
    const bool succeeded = SimulatedDevice::Run(site, first, last, context, facts, block);
    t_is_device = false;
    return succeeded;
  }
};

class SlowLoop {
 public:
  explicit SlowLoop(int64_t iterations = 60)
      : values_(static_cast<size_t>(iterations)),
        site_(
            [](int64_t first, int64_t last, void* context) {
              if (!t_is_device) std::this_thread::sleep_for(std::chrono::milliseconds(last - first));
              for (int64_t i = first; i < last; ++i) ++(*static_cast<double**>(context))[i];
            },
            {values_.data()}, {{0, kRead | kWritten, 0, 8, 8, 8}}, {{0, 0}}, sizeof(double*)) {
    site_.get()->device_code = "code";
    site_.get()->kernel = "kernel";
  }
  void Run(Partitioner& partitioner) {
    double* pointer = values_.data();
    ASSERT_EQ(site_.Enter(partitioner, static_cast<int64_t>(values_.size()), &pointer), 1);
    ++runs_;
    partitioner.Sync();
    ASSERT_EQ(values_, std::vector<double>(values_.size(), runs_));
  }

 private:
  std::vector<double> values_;
  double runs_ = 0;
  TestSite site_;
};

PartitionSettings Auto() {
  PartitionSettings settings;
  settings.mode = PartitionMode::kAuto;
  settings.threads = 2;
  settings.earned_seconds = 0.01;
  settings.device_seconds = settings.tuner_seconds = 0.02;
  return settings;
}

std::unique_ptr<PartitionDevice> MakeFastDevice() {
  return std::make_unique<FastDevice>(SimulatedDeviceSettings());
}

TEST(TunedTest, LoopsRunAsTheTunerSays) {
  for (const LoopPlan& plan :
       {LoopPlan{0.5, 2, 2, 64, 2}, LoopPlan{1, 1, 2, 0, 0}, LoopPlan{0, 1, 1, 0, 0}}) {
    SCOPED_TRACE(std::to_string(plan.device_share));
    OnePlan::Told told;
    Partitioner partitioner(Auto(), MakeFastDevice, [&] { return std::make_unique<OnePlan>(plan, told); });
    SlowLoop before, loop;
    for (int i = 0; i < 1000 && told.asked == 0; ++i) before.Run(partitioner);
    ASSERT_GT(told.asked, 0);
    for (int i = 0; i < 1000 && !told.space.has_device; ++i) before.Run(partitioner);
    EXPECT_TRUE(told.space.has_device);
    EXPECT_EQ(told.space.most_threads, 2);
    // The first runs are not the tuner's yet.
    for (int i = 0; i < 20; ++i) loop.Run(partitioner);
    EXPECT_EQ(told.failed, 0);
    EXPECT_EQ(told.done, told.asked);
    EXPECT_GT(told.seconds, 0);
    const std::string report = partitioner.Report();
    const size_t split = report.rfind("split ") + 6;
    EXPECT_NEAR(std::stod(report.substr(split)), 100 * plan.device_share, 25) << report;
    EXPECT_NE(told.known.back(), LoopPlan());
    partitioner.End();
  }
}

TEST(TunedTest, TheDeviceTakesWhatIsLeftOfALongCall) {
  PartitionSettings settings = Auto();
  settings.tuner = false;
  Partitioner partitioner(settings, MakeFastDevice);
  SlowLoop loop(1000);
  loop.Run(partitioner);
  const std::string report = partitioner.Report();
  EXPECT_THAT(report, HasSubstr("calls 1, split "));
  EXPECT_GT(std::stod(report.substr(report.find("split ") + 6)), 30) << report;
  partitioner.End();
}

// The first iterations take nearly nothing: nobody would think from them that the rest is worth a device.
TEST(TunedTest, TheDeviceTakesWhatIsLeftOfATriangle) {
  constexpr int64_t kIterations = 200;
  PartitionSettings settings = Auto();
  settings.tuner = false;
  settings.device_seconds = 0.1;
  Partitioner partitioner(settings, MakeFastDevice);
  std::vector<double> values(kIterations);
  double* pointer = values.data();
  TestSite site(
      [](int64_t first, int64_t last, void* context) {
        for (int64_t i = first; i < last; ++i) {
          if (!t_is_device) std::this_thread::sleep_for(std::chrono::microseconds(50 * i));
          ++(*static_cast<double**>(context))[i];
        }
      },
      {pointer}, {{0, kRead | kWritten, 0, 8, 8, 8}}, {{0, 0}}, sizeof(pointer), {}, /*first_work=*/0);
  site.get()->device_code = "code";
  site.get()->kernel = "kernel";
  ASSERT_EQ(site.Enter(partitioner, kIterations, &pointer), 1);
  partitioner.Sync();
  EXPECT_EQ(values, std::vector<double>(kIterations, 1.0));
  const std::string report = partitioner.Report();
  EXPECT_GT(std::stod(report.substr(report.find("split ") + 6)), 20) << report;
  partitioner.End();
}

TEST(TunedTest, APlanThatTheDeviceCannotRunHasFailed) {
  OnePlan::Told told;
  PartitionSettings settings = Auto();
  SimulatedDeviceSettings no_memory;
  no_memory.memory_bytes = 1;
  Partitioner partitioner(
      settings, [&] { return std::make_unique<FastDevice>(no_memory); },
      [&] {
        return std::make_unique<OnePlan>(LoopPlan{0.5, 1, 2, 0, 0}, told);
      });
  SlowLoop loop;
  for (int i = 0; i < 1000 && told.failed == 0; ++i) loop.Run(partitioner);
  EXPECT_GT(told.failed, 0);
  partitioner.End();
}

TEST(TunedTest, WhatWasLearnedIsUsedByTheNextProcess) {
  char folder[] = "/tmp/fusion-tuned-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  PartitionSettings settings = Auto();
  settings.tuner = false;
  settings.learned_path = std::string(folder) + "/partition/program";
  {
    Partitioner partitioner(settings, MakeFastDevice);
    SlowLoop loop;
    for (int i = 0; i < 1000 && partitioner.Report().find("split 0%") != std::string::npos; ++i)
      loop.Run(partitioner);
    for (int i = 0; i < 20; ++i) loop.Run(partitioner);
    partitioner.End();
  }
  ASSERT_TRUE(std::filesystem::exists(settings.learned_path));
  // Nothing has to be earned again.
  settings.earned_seconds = 1e9;
  settings.device_seconds = 0.1;
  {
    Partitioner partitioner(settings, MakeFastDevice);
    SlowLoop loop;
    loop.Run(partitioner);
    // Threads, or a device that was there at once.
    EXPECT_THAT(partitioner.Report(), Not(HasSubstr("split 0% device, host threads 1")));
    for (int i = 0; i < 1000 && partitioner.Report().find("split 0%") != std::string::npos; ++i)
      loop.Run(partitioner);
    EXPECT_EQ(partitioner.Report().find("split 0%"), std::string::npos);
    partitioner.End();
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace fusion
