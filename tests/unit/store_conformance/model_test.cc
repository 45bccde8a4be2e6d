#include <gmock/gmock.h>

#include "tests/unit/store_conformance/store_conformance.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ModelTest : public StoreConformanceTest {
 protected:
  // Two kernels and a table of each of two toolkits, and statistics of one version.
  void Fill(const std::string& device) {
    for (const std::string toolkit : {"13.0", "12.8"}) {
      const KernelTimesKey key{.device_class = device, .cache = "COLD", .toolkit = toolkit};
      const auto set = [](std::vector<KernelTimeRecord>* kernels) {
        for (KernelTimeRecord& kernel : *kernels) kernel.content = "x";
      };
      ASSERT_TRUE(
          store_->UpdateKernelTimes(key, {{"f", "8", "a", ""}, {"f", "8", "b", ""}}, set, 100, At(1)).ok());
      ASSERT_TRUE(
          store_->PutRoutineTable({.device_class = device, .toolkit = toolkit}, {"load", "", "y"}, At(1))
              .ok());
    }
    ASSERT_TRUE(store_
                    ->UpdateModelStatistics(
                        {.device_class = device, .cache = "COLD", .model_version = 1},
                        [](const std::string&) { return "z"; }, At(1))
                    .ok());
  }
  std::vector<std::string> Devices() {
    auto devices = store_->ModelDevices();
    EXPECT_TRUE(devices.ok()) << devices.status();
    return devices.value_or(std::vector<std::string>());
  }
  void ExpectForgotten(const std::string& device, int64_t kernel_times, int64_t statistics,
                       int64_t routine_tables) {
    auto forgotten = store_->ForgetModel(device);
    ASSERT_TRUE(forgotten.ok()) << forgotten.status();
    EXPECT_EQ(forgotten->kernel_times, kernel_times);
    EXPECT_EQ(forgotten->statistics, statistics);
    EXPECT_EQ(forgotten->routine_tables, routine_tables);
  }
};

TEST_P(ModelTest, IsForgottenOfOneDevice) {
  EXPECT_THAT(Devices(), IsEmpty());
  Fill("H200");
  Fill("A100");
  EXPECT_THAT(Devices(), ElementsAre("A100", "H200"));
  ExpectForgotten("H100", 0, 0, 0);
  ExpectForgotten("H200", 4, 1, 2);
  ExpectForgotten("H200", 0, 0, 0);
  Reopen();
  EXPECT_THAT(Devices(), ElementsAre("A100"));
  const KernelTimesKey key{.device_class = "H200", .cache = "COLD", .toolkit = "13.0"};
  EXPECT_THAT(*store_->KernelFamilies(key), IsEmpty());
  EXPECT_EQ(*store_->ModelStatistics({.device_class = "H200", .cache = "COLD", .model_version = 1}), "");
  EXPECT_THAT(*store_->RoutineTables({.device_class = "H200", .toolkit = "13.0"}), IsEmpty());
  // What is measured afterwards is new.
  Fill("H200");
  EXPECT_THAT(Devices(), ElementsAre("A100", "H200"));
}

TEST_P(ModelTest, IsForgottenOfAllDevices) {
  Fill("H200");
  Fill("A100");
  ExpectForgotten("", 8, 2, 4);
  EXPECT_THAT(Devices(), IsEmpty());
}

FOR_EVERY_STORE(ModelTest);

}  // namespace
}  // namespace fusion
