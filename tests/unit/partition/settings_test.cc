#include "client/partition/settings.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace fusion {
namespace {

std::map<std::string, std::string> g_variables;

PartitionSettings Read(const std::map<std::string, std::string>& variables,
                       std::vector<std::string> expected_complaints = {}) {
  g_variables.clear();
  for (const auto& [name, value] : variables) g_variables["FUSION_PARTITION" + name] = value;
  std::vector<std::string> complaints;
  const PartitionSettings settings = ReadPartitionSettings(
      [](const char* name) -> const char* {
        const auto found = g_variables.find(name);
        return found == g_variables.end() ? nullptr : found->second.c_str();
      },
      complaints);
  EXPECT_EQ(complaints, expected_complaints);
  return settings;
}

TEST(PartitionSettingsTest, DefaultsHoldWhereNothingIsSet) {
  const PartitionSettings settings = Read({});
  EXPECT_EQ(settings.mode, PartitionMode::kAuto);
  EXPECT_EQ(settings.device, PartitionDeviceKind::kCuda);
  EXPECT_FALSE(settings.report);
  EXPECT_TRUE(settings.tuner);
  EXPECT_FALSE(settings.split.has_value());
  EXPECT_EQ(settings.chunks, 1);
  EXPECT_GE(settings.threads, 1);
  EXPECT_EQ(settings.least_work, 100000);
  EXPECT_EQ(settings.simulated.memory_bytes, INT64_MAX);
  EXPECT_EQ(settings.simulated.fault, 0);
}

TEST(PartitionSettingsTest, AllVariablesAreRead) {
  EXPECT_EQ(Read({{"", "off"}}).mode, PartitionMode::kOff);
  EXPECT_EQ(Read({{"", "host"}}).mode, PartitionMode::kHost);
  EXPECT_EQ(Read({{"", "device"}}).mode, PartitionMode::kDevice);
  EXPECT_EQ(Read({{"", "check"}}).mode, PartitionMode::kCheck);
  EXPECT_EQ(Read({{"", ""}}).mode, PartitionMode::kAuto);
  const PartitionSettings settings = Read({{"_DEVICE", "simulated"},
                                           {"_REPORT", "1"},
                                           {"_TUNER", "off"},
                                           {"_SPLIT", ".25"},
                                           {"_CHUNKS", "64"},
                                           {"_THREADS", "7"},
                                           {"_LEAST_WORK", "1e6"},
                                           {"_SIMULATED", "memory=4096,fault=3"}});
  EXPECT_EQ(settings.device, PartitionDeviceKind::kSimulated);
  EXPECT_TRUE(settings.report);
  EXPECT_FALSE(settings.tuner);
  EXPECT_EQ(settings.split, 0.25);
  EXPECT_EQ(settings.chunks, 64);
  EXPECT_EQ(settings.threads, 7);
  EXPECT_EQ(settings.least_work, 1e6);
  EXPECT_EQ(settings.simulated.memory_bytes, 4096);
  EXPECT_EQ(settings.simulated.fault, 3);
}

TEST(PartitionSettingsTest, AnUnknownModeIsOff) {
  EXPECT_EQ(Read({{"", "gpu"}}, {"FUSION_PARTITION=gpu is none of off, host, device, auto, check"}).mode,
            PartitionMode::kOff);
}

TEST(PartitionSettingsTest, ATunerThatIsNotUnderstoodIsOff) {
  EXPECT_FALSE(Read({{"_TUNER", "no"}}, {"FUSION_PARTITION_TUNER=no is none of off, on"}).tuner);
}

TEST(PartitionSettingsTest, DefaultsAreTakenForBadNumbers) {
  for (const char* bad : {"0", "65", "-1", "4 ", "4x", "nan", "1e400"})
    EXPECT_EQ(Read({{"_CHUNKS", bad}}, {"FUSION_PARTITION_CHUNKS=" + std::string(bad) +
                                        " is not a number from 1 to 64, the default is taken"})
                  .chunks,
              1);
  for (const char* bad : {"1.01", "-0.1", "nan", "half", "0,5"})
    EXPECT_FALSE(Read({{"_SPLIT", bad}}, {"FUSION_PARTITION_SPLIT=" + std::string(bad) +
                                          " is not a number from 0 to 1, the default is taken"})
                     .split.has_value());
  for (const char* bad : {"memory", "memory=-1", "fault=x", "fault=1;memory=2", "speed=1"})
    EXPECT_EQ(Read({{"_SIMULATED", bad}}, {"FUSION_PARTITION_SIMULATED=" + std::string(bad) +
                                           " is not memory=BYTES,fault=RUN, the default is taken"})
                  .simulated.fault,
              0);
}

}  // namespace
}  // namespace fusion
