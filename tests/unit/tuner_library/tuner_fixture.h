// A tuner of the C API with a simulated server.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "client/tuner/fusion_tuner.h"
#include "client/tuner/handles.h"
#include "tests/unit/tuner_library/simulated_server.h"

namespace fusion::testing {

class TunerTest : public ::testing::Test {
 protected:
  ~TunerTest() override { Destroy(); }

  void Create(double exploration_share = -1) {
    tuning::TunerSettings settings;
    settings.program = "test";
    settings.device_class = "here";
    settings.exploration_share = exploration_share;
    settings.server = "the simulated server";
    settings.dial = server_.Dialer();
    settings.last_flush_seconds = 30;
    settings.notice = [this](const std::string& line) {
      std::lock_guard lock(notices_mutex_);
      notices_.push_back(line);
    };
    tuner_ = tuning::HandleOf(new tuning::Tuner(settings));
  }
  void Destroy() {
    fusion_tuner_destroy(tuner_);
    tuner_ = nullptr;
  }
  fusion_tuner_parameter* Range(const char* name, int64_t lower, int64_t upper, int64_t step = 1) {
    fusion_tuner_parameter* parameter = nullptr;
    EXPECT_EQ(fusion_tuner_integer_range(tuner_, name, lower, upper, step, &parameter), FUSION_TUNER_OK)
        << fusion_tuner_message();
    return parameter;
  }
  // Declared, with one parameter "tile" from 0 to 100.
  fusion_tuner_section* TileSection(const char* name = "loop") {
    fusion_tuner_section* section = nullptr;
    EXPECT_EQ(fusion_tuner_section_create(tuner_, name, &section), FUSION_TUNER_OK) << fusion_tuner_message();
    EXPECT_EQ(fusion_tuner_section_parameter(section, Range("tile", 0, 100)), FUSION_TUNER_OK);
    EXPECT_EQ(fusion_tuner_section_declare(section), FUSION_TUNER_OK) << fusion_tuner_message();
    return section;
  }
  int64_t BestTile(fusion_tuner_section* section) {
    fusion_tuner_value value;
    EXPECT_EQ(fusion_tuner_best(section, &value, 1), FUSION_TUNER_OK);
    return value.integer;
  }
  bool WaitForBest(fusion_tuner_section* section, int64_t tile) {
    return server_.WaitFor([&] { return BestTile(section) == tile; });
  }
  fusion_tuner_counters_t Counters() {
    fusion_tuner_counters_t counters{};
    counters.size = sizeof(counters);
    EXPECT_EQ(fusion_tuner_counters(tuner_, &counters), FUSION_TUNER_OK);
    return counters;
  }
  std::vector<std::string> Notices() {
    std::lock_guard lock(notices_mutex_);
    return notices_;
  }

  SimulatedServer server_;
  fusion_tuner* tuner_ = nullptr;

 private:
  std::mutex notices_mutex_;
  std::vector<std::string> notices_;
};

}  // namespace fusion::testing
