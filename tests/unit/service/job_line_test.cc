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

TEST(JobLineTest, UsersBelowTheirShareCanBeTakenAlone) {
  JobLine line;
  EXPECT_EQ(line.TakeBelowShare(1), std::nullopt);
  for (const char* job : {"n1", "n2", "n3"}) line.Add(job, "noisy", 100);
  EXPECT_EQ(line.TakeBelowShare(1), "n1");
  EXPECT_EQ(line.TakeBelowShare(1), std::nullopt) << "n1 runs";
  line.Add("q1", "quiet", 0);
  EXPECT_EQ(line.TakeBelowShare(1), "q1") << "with none running he has less than half a place";
  line.Add("q2", "quiet", 0);
  EXPECT_EQ(line.TakeBelowShare(1), std::nullopt);
  line.Ended("n1");
  EXPECT_EQ(line.TakeBelowShare(1), "n2");
  EXPECT_EQ(line.size(), 4) << "what was not taken waits";
  EXPECT_EQ(line.Take(), "q2");
  EXPECT_EQ(line.Take(), "n3");
}

TEST(JobLineTest, AShareIsThatOfAllWhoHaveJobs) {
  JobLine line;
  for (int i = 0; i < 9; ++i) line.Add("n" + std::to_string(i), "noisy", 0);
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(line.TakeBelowShare(8).has_value()) << "alone he has all";
  EXPECT_EQ(line.TakeBelowShare(8), std::nullopt);
  for (int i = 0; i < 5; ++i) line.Add("q" + std::to_string(i), "quiet", 0);
  for (const char* job : {"q0", "q1", "q2", "q3"}) EXPECT_EQ(line.TakeBelowShare(8), job);
  EXPECT_EQ(line.TakeBelowShare(8), std::nullopt) << "of two users each has four";
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
