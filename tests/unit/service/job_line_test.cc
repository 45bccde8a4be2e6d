#include "server/service/job_line.h"

#include <gmock/gmock.h>

#include <vector>

namespace fusion {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> TakeAll(JobLine* line) {
  std::vector<std::string> jobs;
  while (std::optional<std::string> job = line->Take()) jobs.push_back(*job);
  return jobs;
}

TEST(JobLineTest, JobsOfOneUserGoByPriorityThenAge) {
  JobLine line;
  line.Add("a", "ada", 0);
  line.Add("b", "ada", 5);
  line.Add("c", "ada", 5);
  line.Add("d", "ada", -5);
  EXPECT_THAT(TakeAll(&line), ElementsAre("b", "c", "a", "d"));
}

TEST(JobLineTest, UsersTakeTurns) {
  JobLine line;
  for (const char* job : {"n1", "n2", "n3", "n4"}) line.Add(job, "noisy", 100);
  EXPECT_EQ(line.Take(), "n1");
  line.Add("q1", "quiet", 0);
  EXPECT_EQ(line.Take(), "q1") << "who has the fewest running";
  EXPECT_EQ(line.Take(), "n2");
  line.Add("q2", "quiet", 0);
  line.Ended("n1");
  EXPECT_EQ(line.Take(), "q2") << "both have one running: who was served longest ago";
  line.Ended("q1");
  line.Ended("q2");
  EXPECT_EQ(line.Take(), "n3");
}

TEST(JobLineTest, UsersWhoHaveNoneRunningCanBeTakenAlone) {
  JobLine line;
  EXPECT_EQ(line.TakeOfIdleUser(), std::nullopt);
  for (const char* job : {"n1", "n2", "n3"}) line.Add(job, "noisy", 100);
  EXPECT_EQ(line.TakeOfIdleUser(), "n1");
  EXPECT_EQ(line.TakeOfIdleUser(), std::nullopt) << "n1 runs";
  line.Add("q1", "quiet", 0);
  EXPECT_EQ(line.TakeOfIdleUser(), "q1");
  line.Add("q2", "quiet", 0);
  EXPECT_EQ(line.TakeOfIdleUser(), std::nullopt);
  line.Ended("n1");
  EXPECT_EQ(line.TakeOfIdleUser(), "n2");
  EXPECT_EQ(line.size(), 4) << "what was not taken waits";
  EXPECT_EQ(line.Take(), "q2");
  EXPECT_EQ(line.Take(), "n3");
}

TEST(JobLineTest, RemovedJobsAreNotTaken) {
  JobLine line;
  line.Add("a", "ada", 0);
  line.Add("b", "ada", 0);
  EXPECT_TRUE(line.Remove("a"));
  EXPECT_FALSE(line.Remove("a"));
  EXPECT_EQ(line.Take(), "b");
  EXPECT_FALSE(line.Remove("b")) << "it runs";
  EXPECT_EQ(line.Take(), std::nullopt);
}

TEST(JobLineTest, CountsWhatWaitsAndRuns) {
  JobLine line;
  line.Add("a", "ada", 0);
  line.Add("b", "ada", 0);
  line.Add("c", "ben", 0);
  ASSERT_TRUE(line.Take().has_value());
  EXPECT_EQ(line.size(), 3);
  EXPECT_EQ(line.size("ada"), 2);
  line.Ended("a");
  line.Ended("a");
  EXPECT_EQ(line.size("ada"), 1);
  EXPECT_EQ(line.size("nobody"), 0);
}

}  // namespace
}  // namespace fusion
