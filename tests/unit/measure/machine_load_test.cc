#include "worker/measure/machine_load.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace fusion {
namespace {

class MachineLoadTest : public ::testing::Test {
 protected:
  MachineLoadTest() : root_(std::filesystem::path(::testing::TempDir()) / "machine_load") {
    std::filesystem::remove_all(root_);
  }
  ~MachineLoadTest() override { std::filesystem::remove_all(root_); }
  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  const std::filesystem::path root_;
};

TEST_F(MachineLoadTest, SaysWhatWantedToRunAndWhatWasStolenMeanwhile) {
  Write("proc/stat",
        "cpu  100 0 50 800 10 0 0 40 7 0\ncpu0 50 0 25 400 5 0 0 20 7 0\ncpu1 50 0 25 400 5 0 0 20 0 0\n"
        "ctxt 9\nprocs_running 1\nprocs_blocked 0\n");
  Write("proc/cpuinfo", "processor : 0\ncpu MHz\t\t: 2000.5\nprocessor : 1\ncpu MHz\t\t: 3000.5\n");
  const MachineLoad load(root_);
  // 1,000 ticks later, of which 250 were stolen; eight threads beside the one that reads.
  Write("proc/stat",
        "cpu  600 0 100 950 60 0 0 290 9 0\ncpu0 300 0 50 475 30 0 0 145 9 0\ncpu1 300 0 50 475 30 0 0 145 0 "
        "0\n"
        "procs_running 9\n");
  v1::MeasurementConditions conditions;
  load.Describe(&conditions);
  EXPECT_DOUBLE_EQ(conditions.load(), 2) << "none at first and eight at last, on two processors";
  EXPECT_DOUBLE_EQ(conditions.stolen_share(), 0.25);
  EXPECT_DOUBLE_EQ(conditions.processor_mhz(), 2500.5);
}

TEST_F(MachineLoadTest, ClocksAreReadWhereTheSystemSetsThem) {
  Write("proc/cpuinfo", "cpu MHz : 2000\n");
  Write("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "1500000\n");
  Write("sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "3500000\n");
  v1::MeasurementConditions conditions;
  MachineLoad(root_).Describe(&conditions);
  EXPECT_DOUBLE_EQ(conditions.processor_mhz(), 2500);
}

TEST_F(MachineLoadTest, WhatTheSystemDoesNotSayStaysUnset) {
  v1::MeasurementConditions conditions;
  MachineLoad(root_).Describe(&conditions);
  EXPECT_EQ(conditions.processor_mhz(), 0);
  EXPECT_EQ(conditions.load(), 0);
  EXPECT_EQ(conditions.stolen_share(), 0);
}

}  // namespace
}  // namespace fusion
