#include "server/jobs/job_watchers.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

TEST(JobWatchersTest, WakesThoseOfTheJobUntilTheyLeave) {
  JobWatchers watchers;
  int first = 0, second = 0, other = 0;
  auto a = watchers.Subscribe("jobs/1", [&] { ++first; });
  auto b = watchers.Subscribe("jobs/1", [&] { ++second; });
  auto c = watchers.Subscribe("jobs/2", [&] { ++other; });
  watchers.Notify("jobs/1");
  b.reset();
  watchers.Notify("jobs/1");
  watchers.Notify("jobs/3");
  EXPECT_EQ(first, 2);
  EXPECT_EQ(second, 1);
  EXPECT_EQ(other, 0);
}

TEST(JobWatchersTest, CloseWakesEveryone) {
  JobWatchers watchers;
  int woken = 0;
  auto a = watchers.Subscribe("jobs/1", [&] { ++woken; });
  auto b = watchers.Subscribe("jobs/2", [&] { ++woken; });
  EXPECT_FALSE(watchers.closed());
  watchers.Close();
  EXPECT_TRUE(watchers.closed());
  EXPECT_EQ(woken, 2);
}

TEST(JobWatchersTest, AWatcherMayLeaveWhileItIsWoken) {
  JobWatchers watchers;
  std::unique_ptr<JobWatchers::Subscription> subscription;
  int woken = 0;
  subscription = watchers.Subscribe("jobs/1", [&] {
    ++woken;
    subscription.reset();
  });
  watchers.Notify("jobs/1");
  watchers.Notify("jobs/1");
  EXPECT_EQ(woken, 1);
}

}  // namespace
}  // namespace fusion
