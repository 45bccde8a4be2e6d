#include "worker/measure/activity.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace fusion {
namespace {

TEST(ActivityPageTest, IsSeenThroughAnotherMapping) {
  auto writer = ActivityPage::Create();
  ASSERT_TRUE(writer.ok()) << writer.status();
  auto reader = ActivityPage::Open(dup((*writer)->descriptor()));
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->Get().activity, Activity::kIdle);
  EXPECT_EQ((*reader)->Get().program, kNoProgram);
  (*writer)->Set(Activity::kRun, 17);
  EXPECT_EQ((*reader)->Get().activity, Activity::kRun);
  EXPECT_EQ((*reader)->Get().program, 17);
  (*writer)->Set(Activity::kLoad, kUnfusedProgram);
  EXPECT_EQ((*reader)->Get().activity, Activity::kLoad);
  EXPECT_EQ((*reader)->Get().program, kUnfusedProgram);
  EXPECT_GE((*reader)->Get().seconds, 0);
}

TEST(ActivityPageTest, ABadDescriptorIsAnError) { EXPECT_FALSE(ActivityPage::Open(-1).ok()); }

}  // namespace
}  // namespace fusion
