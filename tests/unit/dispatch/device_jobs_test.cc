#include "server/dispatch/device_jobs.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

const std::vector<std::string> kDevices = {"GPU-1", "GPU-2", "GPU-3"};

class DeviceJobsTest : public ::testing::Test {
 protected:
  std::string Choose(const std::string& user, const std::vector<std::string>& of = kDevices) {
    const std::string uuid = jobs_.LeastUsed(of);
    jobs_.Bind(absl::StrCat("job", ++number_), user, uuid);
    return uuid;
  }
  // The device that the job had.
  std::string Release(const std::string& job) { return jobs_.Release(job).value_or(DeviceJobs::Job()).uuid; }

  DeviceJobs jobs_;
  int number_ = 0;
};

TEST_F(DeviceJobsTest, TheJobsOfOneUserAreSpreadInTurn) {
  for (int i = 0; i < 3; ++i)
    for (const std::string& uuid : kDevices) EXPECT_EQ(Choose("ada"), uuid);
  EXPECT_EQ(Release("job2"), "GPU-2");
  EXPECT_EQ(Release("job2"), "") << "it has none any more";
  EXPECT_EQ(Choose("ada"), "GPU-2");
  EXPECT_EQ(Choose("ada"), "GPU-1");
}

TEST_F(DeviceJobsTest, TheManyJobsOfOneUserDoNotHideWhereOthersAre) {
  for (int i = 0; i < 30; ++i) Choose("hog");
  // By their number GPU-2 and GPU-3 would be the least used two times out of three each.
  EXPECT_EQ(Choose("ben"), "GPU-1");
  EXPECT_EQ(Release("job28"), "GPU-1");
  EXPECT_EQ(Choose("cat"), "GPU-2") << "not beside Ben, though Hog has nine there and ten here";
  EXPECT_EQ(Release("job29"), "GPU-2");
  EXPECT_EQ(Choose("eva"), "GPU-3");
}

TEST_F(DeviceJobsTest, AFewJobsOfSomebodyKeepNoDeviceIdle) {
  Choose("ben");
  std::map<std::string, int> hogs;
  for (int i = 0; i < 12; ++i) ++hogs[Choose("hog")];
  EXPECT_GE(hogs["GPU-1"], 1) << "beside Ben's, which may be building";
  EXPECT_LT(hogs["GPU-1"], hogs["GPU-2"]);
}

TEST_F(DeviceJobsTest, OnlyTheDevicesThatAreAskedAboutCount) {
  for (int i = 0; i < 5; ++i) Choose("hog", {"other"});
  EXPECT_EQ(Choose("hog"), "GPU-1");
  EXPECT_EQ(Choose("hog"), "GPU-2");
  EXPECT_EQ(Choose("hog", {"GPU-2"}), "GPU-2") << "there is no other";
}

TEST_F(DeviceJobsTest, WhoOnlyLooksHasHadHisTurn) {
  jobs_.Bind("", "", jobs_.LeastUsed(kDevices));
  EXPECT_EQ(Choose("ada"), "GPU-2");
  EXPECT_EQ(Release(""), "");
}

}  // namespace
}  // namespace fusion
