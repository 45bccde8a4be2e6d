#include "server/optimize/reported_times.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace fusion {
namespace {

v1::TimeTask TaskOf(const std::vector<std::string>& binaries) {
  v1::TimeTask task;
  v1::Program* program = task.add_programs();
  for (const std::string& binary : binaries) program->add_launches()->set_binary(binary);
  return task;
}

v1::Outcome OutcomeOf(const v1::TimeTask& task, v1::Outcome told, const std::vector<std::string>& binaries) {
  v1::TimeResult result;
  v1::ProgramMeasurement* measurement = result.add_programs();
  measurement->set_outcome(told);
  measurement->mutable_cold()->set_median(1e-6);
  measurement->mutable_cold()->set_samples(7);
  for (const std::string& binary : binaries) measurement->add_binaries(binary);
  return ReportedTimes(result, task, nullptr).programs(0).outcome();
}

TEST(ReportedTimesTest, ATimeCountsIfTheBinariesOfTheLaunchesRan) {
  const v1::TimeTask task = TaskOf({"sha256:a", "sha256:b", "sha256:a"});
  EXPECT_EQ(OutcomeOf(task, v1::OK, {"sha256:a", "sha256:b"}), v1::OK);
  EXPECT_EQ(OutcomeOf(task, v1::OK, {"sha256:b", "sha256:a"}), v1::OK);
  EXPECT_EQ(OutcomeOf(task, v1::OK, {"sha256:a"}), v1::WORKER_LOST);
  EXPECT_EQ(OutcomeOf(task, v1::OK, {"sha256:a", "sha256:c"}), v1::WORKER_LOST);
  EXPECT_EQ(OutcomeOf(task, v1::OK, {"sha256:a", "sha256:b", "sha256:c"}), v1::WORKER_LOST);
  EXPECT_EQ(OutcomeOf(task, v1::OK, {}), v1::WORKER_LOST) << "what ran is not said";
}

TEST(ReportedTimesTest, WhatNeverRanNamesNoBinaries) {
  const v1::TimeTask task = TaskOf({"sha256:a"});
  for (const v1::Outcome outcome : {v1::FAULT, v1::TIMEOUT, v1::LAUNCH_ERROR, v1::WRONG_RESULT}) {
    EXPECT_EQ(OutcomeOf(task, outcome, {}), outcome);
    EXPECT_EQ(OutcomeOf(task, outcome, {"sha256:a"}), outcome);
    EXPECT_EQ(OutcomeOf(task, outcome, {"sha256:b"}), v1::WORKER_LOST) << "the fault was another program's";
  }
}

}  // namespace
}  // namespace fusion
