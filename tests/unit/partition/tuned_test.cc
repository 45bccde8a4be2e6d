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
  SlowLoop()
      : values_(60),
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
    ASSERT_EQ(site_.Enter(partitioner, 60, &pointer), 1);
    ++runs_;
    partitioner.Sync();
    ASSERT_EQ(values_, std::vector<double>(60, runs_));
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
  struct Case {
    LoopPlan plan;
    const char* report;
  };
  for (const Case& each :
       {Case{{0.5, 2, 2, 64, 2}, "split 50% device"}, Case{{1, 1, 2, 0, 0}, "split 100% device"},
        Case{{0, 1, 1, 0, 0}, "split 0% device"}}) {
    SCOPED_TRACE(each.report);
    OnePlan::Told told;
    Partitioner partitioner(Auto(), MakeFastDevice,
                            [&] { return std::make_unique<OnePlan>(each.plan, told); });
    SlowLoop before, loop;
    for (int i = 0; i < 1000 && told.asked == 0; ++i) before.Run(partitioner);
    ASSERT_GT(told.asked, 0);
    for (int i = 0; i < 1000 && !told.space.has_device; ++i) before.Run(partitioner);
    EXPECT_TRUE(told.space.has_device);
    EXPECT_EQ(told.space.most_threads, 2);
    // What is known of another loop is tried first.
    for (int i = 0; i < 20; ++i) loop.Run(partitioner);
    EXPECT_EQ(told.failed, 0);
    EXPECT_EQ(told.done, told.asked);
    EXPECT_GT(told.seconds, 0);
    EXPECT_THAT(partitioner.Report(), HasSubstr("host threads 2"));
    const std::string report = partitioner.Report();
    if (each.plan.device_share == 0) {
      EXPECT_THAT(report, HasSubstr(each.report));
    }
    EXPECT_NE(told.known.back(), LoopPlan());
    partitioner.End();
  }
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
    EXPECT_THAT(partitioner.Report(), HasSubstr("host threads 2"));
    for (int i = 0; i < 1000 && partitioner.Report().find("split 0%") != std::string::npos; ++i)
      loop.Run(partitioner);
    EXPECT_EQ(partitioner.Report().find("split 0%"), std::string::npos);
    partitioner.End();
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace fusion
