// What is remembered of devices, and when the floor means something.
#include "server/optimize/device_figures.h"

#include <gtest/gtest.h>

#include "tests/unit/store/store_fixture.h"

namespace fusion {
namespace {

DeviceDescription Host(double copy_bytes_per_second, double copy_spread) {
  DeviceDescription device;
  device.set_name("processor");
  device.set_driver_version("Linux 6");
  device.set_target(v1::HOST);
  device.set_multiprocessors(2);
  device.set_l2_bytes(32'000'000);
  device.set_copy_bytes_per_second(copy_bytes_per_second);
  device.set_copy_spread(copy_spread);
  return device;
}

class DeviceFiguresTest : public StoreTest {
 protected:
  double Rate(const DeviceDescription& device) {
    auto steady = WithSteadyBandwidth(device, *store_);
    EXPECT_TRUE(steady.ok()) << steady.status();
    return steady.ok() ? steady->copy_bytes_per_second() : 0;
  }
  void Remember(const DeviceDescription& device, int second) {
    const absl::Status remembered = RememberDevice(device, *store_, At(second));
    EXPECT_TRUE(remembered.ok()) << remembered;
  }
};

TEST_F(DeviceFiguresTest, ARateOfABusyMachineGivesWayToASteadyOneThatIsRemembered) {
  EXPECT_EQ(Rate(Host(3e9, 4)), 3e9) << "nothing is known";
  Remember(Host(3e9, 4), 1);
  EXPECT_EQ(Rate(Host(2e9, 3)), 2e9) << "what is known is no better";
  Remember(Host(1.2e10, 0.03), 2);
  Remember(Host(3e9, 4), 3);
  EXPECT_EQ(Rate(Host(2e9, 3)), 1.2e10);
  EXPECT_EQ(WithSteadyBandwidth(Host(2e9, 3), *store_)->copy_spread(), 0.03);
  EXPECT_EQ(Rate(Host(1.1e10, 0.05)), 1.1e10) << "it is steady itself";
}

TEST_F(DeviceFiguresTest, ItIsThatOfAsManyProcessorsAndTheSameDriver) {
  Remember(Host(1.2e10, 0.03), 1);
  DeviceDescription larger = Host(2e9, 3), newer = larger;
  larger.set_multiprocessors(16);
  newer.set_driver_version("Linux 7");
  EXPECT_EQ(Rate(larger), 2e9);
  EXPECT_EQ(Rate(newer), 2e9);
}

v1::Statistics Cold(double high) {
  v1::Statistics cold;
  cold.set_high(high);
  return cold;
}

TEST(IsBelowFloor, OnlyWhereItMeansSomething) {
  // 100 MB take 10 ms.
  EXPECT_TRUE(IsBelowFloor(Host(1e10, 0.05), 1e8, Cold(9e-3)));
  EXPECT_FALSE(IsBelowFloor(Host(1e10, 0.05), 1e8, Cold(9.8e-3))) << "copies differ by as much";
  EXPECT_FALSE(IsBelowFloor(Host(1e10, 0.05), 2e7, Cold(1e-5))) << "caches may hold so much";
  EXPECT_FALSE(IsBelowFloor(Host(1e10, 3), 1e8, Cold(1e-4))) << "nobody knows the rate";
}

}  // namespace
}  // namespace fusion
