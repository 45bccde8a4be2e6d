#include "worker/agent/device_health.h"

#include <gtest/gtest.h>

#include "tests/eventually.h"

namespace fusion {
namespace {

class DeviceHealthTest : public ::testing::Test {
 protected:
  DeviceHealthTest() {
    health_.OnChange([this] { ++changes_; });
  }
  DeviceHealth health_;
  int changes_ = 0;
};

TEST_F(DeviceHealthTest, ADeviceIsOutUntilItIsBroughtBack) {
  EXPECT_FALSE(health_.IsOut("GPU-1"));
  EXPECT_TRUE(health_.Problems().empty());
  health_.TakeOut("GPU-1", "the probe failed");
  EXPECT_EQ(changes_, 1);
  EXPECT_TRUE(health_.IsOut("GPU-1"));
  EXPECT_FALSE(health_.IsOut("GPU-2"));
  ASSERT_EQ(health_.Problems().size(), 1u);
  EXPECT_EQ(health_.Problems()[0].device_uuid(), "GPU-1");
  EXPECT_EQ(health_.Problems()[0].reason(), "the probe failed");
  health_.BringBack("GPU-1");
  EXPECT_EQ(changes_, 2);
  EXPECT_FALSE(health_.IsOut("GPU-1"));
  EXPECT_TRUE(health_.Problems().empty());
}

TEST_F(DeviceHealthTest, TheNewestReasonStandsWithTheTimeOfTheFirst) {
  health_.TakeOut("GPU-1", "first");
  ASSERT_TRUE(Eventually([&] { return health_.Problems()[0].seconds() > 0.001; }));
  health_.TakeOut("GPU-1", "second");
  ASSERT_EQ(health_.Problems().size(), 1u);
  EXPECT_EQ(health_.Problems()[0].reason(), "second");
  EXPECT_GT(health_.Problems()[0].seconds(), 0.001);
  EXPECT_EQ(changes_, 2);
}

TEST_F(DeviceHealthTest, BringingBackASoundDeviceIsNoChange) {
  health_.BringBack("GPU-1");
  EXPECT_EQ(changes_, 0);
}

TEST_F(DeviceHealthTest, WhoIsToldMayAsk) {
  bool out = false;
  health_.OnChange([&] { out = health_.IsOut("GPU-1"); });
  health_.TakeOut("GPU-1", "x");
  EXPECT_TRUE(out);
  health_.BringBack("GPU-1");
  EXPECT_FALSE(out);
}

}  // namespace
}  // namespace fusion
