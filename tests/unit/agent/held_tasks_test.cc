#include "worker/agent/held_tasks.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

v1::Assignment Assign(const std::string& task, int64_t fence, bool time = false) {
  v1::Assignment assignment;
  assignment.set_task(task);
  assignment.set_fence(fence);
  if (time) {
    assignment.mutable_time();
  } else {
    assignment.mutable_build();
  }
  return assignment;
}

v1::TaskReport Failed(const std::string& task, int64_t fence) {
  v1::TaskReport report;
  report.set_task(task);
  report.set_fence(fence);
  report.set_failure("x");
  return report;
}

class HeldTasksTest : public ::testing::Test {
 protected:
  int changes_ = 0;
  HeldTasks held_{[this] { ++changes_; }};
};

TEST_F(HeldTasksTest, AResultIsKeptUntilItIsForgotten) {
  EXPECT_TRUE(held_.Start(Assign("t", 1)).is_new);
  EXPECT_EQ(held_.Running(v1::BUILD), 1);
  EXPECT_EQ(held_.Running(v1::TIME), 0);
  EXPECT_FALSE(held_.HasFinished());
  held_.Finish(Failed("t", 1));
  EXPECT_EQ(changes_, 1);
  EXPECT_TRUE(held_.HasFinished());
  EXPECT_EQ(held_.Running(v1::BUILD), 0);
  ASSERT_EQ(held_.Reports().size(), 1u);
  EXPECT_EQ(held_.Reports()[0].failure(), "x");
  held_.Forget("t");
  EXPECT_TRUE(held_.empty());
}

TEST_F(HeldTasksTest, AnAssignmentThatComesTwiceIsOne) {
  EXPECT_TRUE(held_.Start(Assign("t", 4)).is_new);
  EXPECT_FALSE(held_.Start(Assign("t", 4)).is_new);
  EXPECT_FALSE(held_.Start(Assign("t", 3)).is_new);
}

TEST_F(HeldTasksTest, ANewerFenceStopsTheOlderAndItsLateResultIsForgotten) {
  HeldTasks::Started older = held_.Start(Assign("t", 1, true));
  HeldTasks::Started newer = held_.Start(Assign("t", 2, true));
  EXPECT_TRUE(newer.is_new);
  EXPECT_TRUE(older.stop.stop_requested());
  EXPECT_FALSE(newer.stop.stop_requested());
  held_.Finish(Failed("t", 1));
  EXPECT_EQ(changes_, 0);
  EXPECT_EQ(held_.Running(v1::TIME), 1);
}

TEST_F(HeldTasksTest, ForgettingStops) {
  HeldTasks::Started started = held_.Start(Assign("t", 1));
  held_.Forget("t");
  EXPECT_TRUE(started.stop.stop_requested());
  held_.Finish(Failed("t", 1));
  EXPECT_TRUE(held_.empty());
  EXPECT_EQ(changes_, 0);
}

// A device is offered again when its timing is nearly done, and no more when the next one has come.
TEST_F(HeldTasksTest, ANearlyDoneTimingLeavesItsDeviceToTheNext) {
  v1::Assignment first = Assign("first", 1, true), second = Assign("second", 1, true);
  for (v1::Assignment* assignment : {&first, &second}) assignment->mutable_time()->set_device_uuid("GPU-1");
  held_.Start(first);
  EXPECT_EQ(held_.RunningDevices(), std::set<std::string>{"GPU-1"});
  held_.NearlyDone("first", 7);  // of another assignment
  held_.NearlyDone("none", 1);
  EXPECT_EQ(changes_, 0);
  held_.NearlyDone("first", 1);
  held_.NearlyDone("first", 1);
  EXPECT_EQ(changes_, 1);
  EXPECT_TRUE(held_.RunningDevices().empty());
  EXPECT_EQ(held_.Running(v1::TIME), 1);
  held_.Start(second);
  EXPECT_EQ(held_.RunningDevices(), std::set<std::string>{"GPU-1"});
  held_.Finish(Failed("first", 1));
  EXPECT_EQ(held_.RunningDevices(), std::set<std::string>{"GPU-1"});
  held_.NearlyDone("second", 1);
  EXPECT_TRUE(held_.RunningDevices().empty());
}

}  // namespace
}  // namespace fusion
