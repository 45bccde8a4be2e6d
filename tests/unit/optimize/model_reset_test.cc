#include "server/optimize/model_reset.h"

#include <gmock/gmock.h>

#include "tests/unit/store/store_fixture.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

class ModelResetTest : public StoreTest {
 protected:
  void Fill(const std::string& device) {
    ASSERT_TRUE(
        store_->PutRoutineTable({.device_class = device, .toolkit = "13.0"}, {"load", "", "x"}, At(1)).ok());
  }
  absl::StatusOr<v1::ResetModelResponse> Reset(const std::string& device, bool all) {
    v1::ResetModelRequest request;
    request.set_device(device);
    request.set_all(all);
    return ResetModel(request, *store_);
  }
};

TEST_F(ModelResetTest, TakesADeviceOrAll) {
  EXPECT_TRUE(absl::IsInvalidArgument(Reset("", false).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Reset("H200", true).status()));
  EXPECT_TRUE(absl::IsNotFound(Reset("H200", false).status()));
  EXPECT_TRUE(Reset("", true).ok());  // nothing is there: nothing is left
}

TEST_F(ModelResetTest, ForgetsAndSaysHowMuch) {
  for (const char* device : {"A100", "H200", "L4"}) Fill(device);
  const absl::Status unknown = Reset("h200", false).status();
  EXPECT_TRUE(absl::IsNotFound(unknown));
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("of: A100, H200, L4"));
  const auto one = Reset("H200", false);
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(one->kernel_times(), 0);
  EXPECT_EQ(one->statistics(), 0);
  EXPECT_EQ(one->routine_tables(), 1);
  EXPECT_TRUE(absl::IsNotFound(Reset("H200", false).status()));
  const auto rest = Reset("", true);
  ASSERT_TRUE(rest.ok()) << rest.status();
  EXPECT_EQ(rest->routine_tables(), 2);
  EXPECT_TRUE(store_->ModelDevices()->empty());
}

}  // namespace
}  // namespace fusion
