#include "server/jobs/job_line.h"

#include <gmock/gmock.h>

#include <map>
#include <random>
#include <set>
#include <string>
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
  JobLine line(100, 0);
  line.Add("a", "ada", 0);
  line.Add("b", "ada", 5);
  line.Add("c", "ada", 5);
  line.Add("d", "ada", -5);
  EXPECT_THAT(TakeAll(&line), ElementsAre("b", "c", "a", "d"));
}

TEST(JobLineTest, UsersTakeTurns) {
  JobLine line(100, 0);
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

TEST(JobLineTest, SoManyRunAsThereArePlaces) {
  JobLine line(2, 0);
  for (const char* job : {"a", "b", "c"}) line.Add(job, job, 0);
  EXPECT_THAT(TakeAll(&line), ElementsAre("a", "b"));
  line.Ended("a");
  EXPECT_EQ(line.Take(), "c");
}

TEST(JobLineTest, PlacesAreKeptForUsersWithLessThanTheirShare) {
  JobLine line(1, 1);
  for (const char* job : {"n1", "n2", "n3"}) line.Add(job, "noisy", 100);
  EXPECT_THAT(TakeAll(&line), ElementsAre("n1"));
  line.Add("q1", "quiet", 0);
  line.Add("q2", "quiet", 0);
  EXPECT_THAT(TakeAll(&line), ElementsAre("q1")) << "with none running he has less than half a place";
  line.Ended("n1");
  // q1 has the one place from here on, and the other is kept again.
  EXPECT_THAT(TakeAll(&line), ElementsAre("n2"));
  line.Ended("n2");
  line.Ended("q1");
  EXPECT_THAT(TakeAll(&line), ElementsAre("q2", "n3"));
  EXPECT_EQ(line.running(), 2);
}

TEST(JobLineTest, AShareIsThatOfAllWhoHaveJobs) {
  JobLine line(8, 8);
  for (int i = 0; i < 9; ++i) line.Add("n" + std::to_string(i), "noisy", 0);
  EXPECT_EQ(TakeAll(&line).size(), 8) << "alone he has all";
  for (int i = 0; i < 5; ++i) line.Add("q" + std::to_string(i), "quiet", 0);
  EXPECT_THAT(TakeAll(&line), ElementsAre("q0", "q1", "q2", "q3")) << "of two users each has four";
}

TEST(JobLineTest, JobsThatRestLeaveTheirPlaces) {
  JobLine line(1, 0);
  line.Add("a", "ada", 0);
  line.Add("b", "ben", 0);
  line.Add("c", "ben", 0);
  ASSERT_THAT(TakeAll(&line), ElementsAre("a"));
  line.Rest("a");
  line.Rest("a");
  EXPECT_EQ(line.running(), 0);
  EXPECT_EQ(line.resting(), 1);
  ASSERT_THAT(TakeAll(&line), ElementsAre("b"));
  line.Return("a");
  EXPECT_FALSE(line.TakeBack("a"));
  line.Ended("b");
  EXPECT_THAT(TakeAll(&line), ElementsAre()) << "who returns comes before those that wait";
  EXPECT_TRUE(line.TakeBack("a"));
  EXPECT_TRUE(line.TakeBack("a")) << "it has one";
  line.Ended("a");
  EXPECT_THAT(TakeAll(&line), ElementsAre("c"));
}

// Of a user with many jobs; neither do his fill the places that are kept.
TEST(JobLineTest, AJobThatReturnsKeepsNobodyFromThePlacesThatAreKept) {
  JobLine line(1, 1);
  line.Add("n1", "noisy", 0);
  line.Add("n2", "noisy", 0);
  ASSERT_EQ(line.Take(), "n1");
  line.Rest("n1");
  ASSERT_EQ(line.Take(), "n2");
  line.Return("n1");
  EXPECT_FALSE(line.TakeBack("n1"));
  line.Add("q1", "quiet", 0);
  EXPECT_EQ(line.Take(), "q1");
  // Nor does it wait for those who have them.
  line.Ended("n2");
  EXPECT_TRUE(line.TakeBack("n1"));
}

TEST(JobLineTest, WhoReturnsHasAPlaceThatIsKeptIfHisUserHasNoOther) {
  JobLine line(1, 1);
  line.Add("q1", "quiet", 0);
  ASSERT_EQ(line.Take(), "q1");
  line.Rest("q1");
  for (const char* job : {"n1", "n2"}) line.Add(job, "noisy", 0);
  ASSERT_THAT(TakeAll(&line), ElementsAre("n1"));
  line.Return("q1");
  EXPECT_TRUE(line.TakeBack("q1"));
  line.Ended("n1");
  EXPECT_THAT(TakeAll(&line), ElementsAre("n2"));
}

// So a user whose jobs wait for a device that is not there has as many others as anybody.
TEST(JobLineTest, JobsThatRestDoNotCountInShares) {
  JobLine line(1, 1);
  for (const char* job : {"n1", "n2"}) line.Add(job, "noisy", 0);
  for (const char* job : {"q1", "q2"}) line.Add(job, "quiet", 0);
  ASSERT_THAT(TakeAll(&line), ElementsAre("n1", "q1"));
  line.Rest("q1");
  EXPECT_THAT(TakeAll(&line), ElementsAre("q2"));
}

TEST(JobLineTest, WhoEndsAtOnceWaitsForNoPlace) {
  JobLine line(1, 0);
  for (const char* job : {"a", "b", "c"}) line.Add(job, "ada", 0);
  ASSERT_EQ(line.Take(), "a");
  line.Rest("a");
  ASSERT_EQ(line.Take(), "b");
  line.Return("a");
  line.TakeBackAnyway("a");
  EXPECT_EQ(line.running(), 2);
  line.Ended("a");
  EXPECT_EQ(line.Take(), std::nullopt);
  line.Ended("b");
  EXPECT_EQ(line.Take(), "c");
}

TEST(JobLineTest, WhoEndsWhileItRestsOrReturnsLeavesNothing) {
  for (const bool returns : {false, true}) {
    JobLine line(1, 0);
    line.Add("a", "ada", 0);
    line.Add("b", "ben", 0);
    ASSERT_EQ(line.Take(), "a");
    line.Rest("a");
    if (returns) line.Return("a");
    line.Ended("a");
    EXPECT_EQ(line.size("ada"), 0);
    EXPECT_EQ(line.Take(), "b");
    EXPECT_EQ(line.resting(), 0);
  }
}

// In any order of events no more run than may, nobody waits while a place is free that he may have, and in
// the end everything has run.
TEST(JobLineTest, PlacesAreRightInAnyOrder) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const int places = 1 + static_cast<int>(random() % 4), kept = static_cast<int>(random() % 3);
    JobLine line(places, kept);
    std::map<std::string, std::string> users;  // by job
    std::set<std::string> waiting, running, resting, returning;
    const auto any = [&](const std::set<std::string>& jobs) {
      return *std::next(jobs.begin(), static_cast<int64_t>(random() % jobs.size()));
    };
    for (int step = 0; step < 300 || !users.empty(); ++step) {
      ASSERT_LT(step, 10000) << "it comes to no end";
      const uint32_t what = random() % (step < 200 ? 8 : 4);
      if (what < 2 && !running.empty()) {
        const std::string job = any(running);
        line.Ended(job);
        running.erase(job);
        users.erase(job);
      } else if (what == 2 && !resting.empty()) {
        const std::string job = any(resting);
        line.Return(job);
        resting.erase(job);
        returning.insert(job);
      } else if (what == 3 && !returning.empty() && random() % 4 == 0) {  // it is cancelled
        const std::string job = any(returning);
        if (random() % 2 == 0) line.TakeBackAnyway(job);
        line.Ended(job);
        returning.erase(job);
        users.erase(job);
      } else if (what == 4 && !running.empty()) {
        const std::string job = any(running);
        line.Rest(job);
        running.erase(job);
        resting.insert(job);
      } else if (what == 5 && !waiting.empty() && random() % 4 == 0) {
        const std::string job = any(waiting);
        ASSERT_TRUE(line.Remove(job));
        waiting.erase(job);
        users.erase(job);
      } else if (what > 5) {
        const std::string job = std::to_string(step);
        users[job] = "user " + std::to_string(random() % 3);
        line.Add(job, users[job], static_cast<int>(random() % 2));
        waiting.insert(job);
      }
      for (auto job = returning.begin(); job != returning.end();) {
        if (!line.TakeBack(*job)) {
          ++job;
          continue;
        }
        running.insert(*job);
        job = returning.erase(job);
      }
      for (const std::string& job : TakeAll(&line)) {
        ASSERT_EQ(waiting.erase(job), 1u);
        running.insert(job);
      }
      ASSERT_LE(running.size(), static_cast<size_t>(places + kept));
      ASSERT_EQ(line.running(), static_cast<int>(running.size()));
      ASSERT_EQ(line.resting(), static_cast<int>(resting.size() + returning.size()));
      if (!waiting.empty() || !returning.empty()) {
        ASSERT_GE(running.size(), static_cast<size_t>(places)) << "a place is free, and somebody waits";
      }
      if (running.size() == static_cast<size_t>(places + kept)) continue;
      std::set<std::string> have_running;
      for (const std::string& job : running) have_running.insert(users[job]);
      for (const auto* jobs : {&waiting, &returning})
        for (const std::string& job : *jobs)
          ASSERT_TRUE(have_running.contains(users[job])) << "a place is kept for " << users[job];
    }
    EXPECT_EQ(line.size(), 0);
  }
}

TEST(JobLineTest, RemovedJobsAreNotTaken) {
  JobLine line(1, 0);
  line.Add("a", "ada", 0);
  line.Add("b", "ada", 0);
  EXPECT_TRUE(line.Remove("a"));
  EXPECT_FALSE(line.Remove("a"));
  EXPECT_EQ(line.Take(), "b");
  EXPECT_FALSE(line.Remove("b")) << "it runs";
  EXPECT_EQ(line.Take(), std::nullopt);
}

TEST(JobLineTest, CountsWhatWaitsAndRuns) {
  JobLine line(1, 0);
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
