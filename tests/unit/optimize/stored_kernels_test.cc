#include "server/optimize/stored_kernels.h"

#include <gmock/gmock.h>

#include <functional>
#include <limits>

#include "fusion/v1/model.pb.h"
#include "tests/unit/store/store_fixture.h"

namespace fusion {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

v1::KernelTime GoodTime() {
  v1::KernelTime time;
  time.set_version(kKernelTimeVersion);
  time.set_model_version(kCostModelVersion);
  time.set_build("build");
  time.set_seconds(1e-5);
  time.set_deviation(0.01);
  time.set_measurements(3);
  time.set_predicted_seconds(2e-5);
  for (int i = 0; i < kResidualFeatures; ++i) time.add_features(0.5);
  return time;
}

KernelTimeRecord Row(const std::string& variant, const std::string& content) {
  return {.family = "f", .sizes = "8", .variant = variant, .content = content};
}

TEST(CheckedKernelTime, IsWhatWasStored) {
  const auto kernel = CheckedKernelTime(Row("a", GoodTime().SerializeAsString()));
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_EQ(kernel->sizes, "8");
  EXPECT_EQ(kernel->variant, "a");
  EXPECT_EQ(kernel->seconds, 1e-5);
  EXPECT_EQ(kernel->deviation, 0.01);
  EXPECT_EQ(kernel->predicted_seconds, 2e-5);
  EXPECT_EQ(kernel->features[kResidualFeatures - 1], 0.5);
}

TEST(CheckedKernelTime, OfAnotherVersionIsForgotten) {
  v1::KernelTime time = GoodTime();
  time.set_version(kKernelTimeVersion - 1);
  EXPECT_TRUE(absl::IsNotFound(CheckedKernelTime(Row("a", time.SerializeAsString())).status()));
}

TEST(CheckedKernelTime, OfAnotherVersionOfTheModelTheTimeIsKept) {
  v1::KernelTime time = GoodTime();
  time.set_model_version(kCostModelVersion + 1);
  time.add_features(1);  // other models have others
  time.set_jobs(2);
  time.set_learned_micros(9);
  const auto kernel = CheckedKernelTime(Row("a", time.SerializeAsString()));
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_EQ(kernel->seconds, 1e-5);
  EXPECT_EQ(kernel->deviation, 0.01);
  EXPECT_EQ(kernel->predicted_seconds, 0);
  EXPECT_EQ(kernel->jobs, 2);
  EXPECT_EQ(kernel->learned_micros, 9);
}

// Each of these is refused, with its reason.
struct Garbage {
  std::function<void(v1::KernelTime*)> change;
  std::string reason;
};
std::vector<Garbage> AllGarbage() {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<Garbage> all;
  for (double seconds : {0.0, -1e-5, kNan, kInfinity, 1e9, 1e-20}) {
    all.push_back({[=](v1::KernelTime* time) { time->set_seconds(seconds); }, "its time is"});
    all.push_back(
        {[=](v1::KernelTime* time) { time->set_predicted_seconds(seconds); }, "its predicted time is"});
  }
  for (double deviation : {-0.1, kNan, kInfinity, 1e6})
    all.push_back({[=](v1::KernelTime* time) { time->set_deviation(deviation); }, "the deviation"});
  all.push_back(
      {[](v1::KernelTime* time) { time->mutable_features()->RemoveLast(); }, "features instead of"});
  all.push_back({[](v1::KernelTime* time) { time->add_features(0); }, "features instead of"});
  all.push_back({[](v1::KernelTime* time) { time->set_features(3, static_cast<float>(kNan)); },
                 "a feature is not a finite number"});
  all.push_back({[](v1::KernelTime* time) { time->set_measurements(-1); }, "measured -1 times"});
  return all;
}

TEST(CheckedKernelTime, RefusesWhatIsNotPossible) {
  for (const Garbage& garbage : AllGarbage()) {
    v1::KernelTime time = GoodTime();
    garbage.change(&time);
    const auto kernel = CheckedKernelTime(Row("a", time.SerializeAsString()));
    EXPECT_TRUE(absl::IsDataLoss(kernel.status())) << time.ShortDebugString();
    EXPECT_THAT(std::string(kernel.status().message()), HasSubstr(garbage.reason));
  }
  for (const std::string content : {"", "\xff\xff no kernel"})
    EXPECT_FALSE(CheckedKernelTime(Row("a", content)).ok());
  // Cut off anywhere it is no kernel, or none of this version.
  const std::string whole = GoodTime().SerializeAsString();
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_FALSE(CheckedKernelTime(Row("a", whole.substr(0, length))).ok()) << length;
}

class StoredKernelsTest : public StoreTest {};

TEST_F(StoredKernelsTest, UsesWhatIsRightAndCountsTheRest) {
  const KernelTimesKey key{.device_class = "H200", .cache = "COLD", .toolkit = "13.0"};
  const std::vector<Garbage> garbage = AllGarbage();
  std::vector<KernelTimeRecord> rows = {Row("right", ""), Row("of another version", "")};
  for (size_t i = 0; i < garbage.size(); ++i) rows.push_back(Row("wrong" + std::to_string(i), ""));
  const auto fill = [&](std::vector<KernelTimeRecord>* kernels) {
    (*kernels)[0].content = GoodTime().SerializeAsString();
    v1::KernelTime old = GoodTime();
    old.set_version(kKernelTimeVersion - 1);
    (*kernels)[1].content = old.SerializeAsString();
    for (size_t i = 0; i < garbage.size(); ++i) {
      v1::KernelTime time = GoodTime();
      garbage[i].change(&time);
      (*kernels)[2 + i].content = time.SerializeAsString();
    }
  };
  ASSERT_TRUE(store_->UpdateKernelTimes(key, rows, fill, 100, At(1)).ok());
  const StoredKernels kernels(*store_, key, {"f"});
  EXPECT_EQ(kernels.RefusedNote(), "");
  EXPECT_TRUE(kernels.Find("g").empty());
  // Looked at twice, each counts once.
  for (int i = 0; i < 2; ++i) {
    const std::vector<RememberedKernel> found = kernels.Find("f");
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].variant, "right");
  }
  EXPECT_THAT(RefusedNote(&kernels),
              AllOf(HasSubstr("stored times of kernels: " + std::to_string(garbage.size()) + " refused ("),
                    HasSubstr("wrong"), HasSubstr("fusion-client model reset --device \"H200\"")));
  EXPECT_EQ(RefusedNote(nullptr), "");
}

}  // namespace
}  // namespace fusion
