#include "server/dispatch/ready_queue.h"

#include <gmock/gmock.h>

#include "server/dispatch/task_queue.h"

namespace fusion {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

Timestamp At(int64_t seconds) { return Timestamp(std::chrono::seconds(seconds)); }

class ReadyQueueTest : public ::testing::Test {
 protected:
  // A build for the host unless changed.
  ReadyTask Task(const std::string& id, const std::string& user = "ada", int priority = 0) {
    return ReadyTask{.number = ++number_,
                     .id = id,
                     .kind = TaskKind::kBuild,
                     .requirements = {"HOST", "x86-64", ""},
                     .user = user,
                     .priority = priority};
  }
  ReadyTask Timing(const std::string& id, const std::string& uuid, const std::string& user = "ada") {
    ReadyTask task = Task(id, user);
    task.kind = TaskKind::kTime;
    task.requirements = {"CUDA", "sm_90", uuid};
    return task;
  }
  std::vector<std::string> Take(int count, const std::string& worker = "w", Timestamp now = At(1)) {
    return Ids(queue_.Take({worker, TaskKind::kBuild, {{"HOST", "x86-64", ""}}, count}, now));
  }
  std::vector<std::string> TakeTimings(const std::vector<std::string>& devices, int count,
                                       const std::string& worker = "w", Timestamp now = At(1)) {
    std::vector<Capability> capabilities;
    for (const std::string& device : devices) capabilities.push_back({"CUDA", "sm_90", device});
    look_again_.reset();
    return Ids(queue_.Take({worker, TaskKind::kTime, capabilities, count}, now, &look_again_));
  }
  // On GPU-1 Hog has one timing of a second behind him and more waiting, Ben has had one that ends at 10 s.
  // Hog has had three on GPU-2 meanwhile.
  void BenHasHadLess() {
    for (int i = 0; i < 9; ++i) queue_.Add(Timing("hog" + std::to_string(i), "GPU-1", "hog"));
    for (int i = 0; i < 3; ++i) queue_.Add(Timing("other" + std::to_string(i), "GPU-2", "hog"));
    ASSERT_THAT(TakeTimings({"GPU-1"}, 1), ElementsAre("hog0"));
    ASSERT_THAT(TakeTimings({"GPU-2"}, 1), ElementsAre("other0"));
    queue_.Done("hog0", 1, At(2));
    queue_.Add(Timing("ben0", "GPU-1", "ben"));
    ASSERT_THAT(TakeTimings({"GPU-1"}, 1), ElementsAre("ben0"));
    for (const std::string id : {"other1", "other2"}) ASSERT_THAT(TakeTimings({"GPU-2"}, 1), ElementsAre(id));
    for (const char* id : {"other0", "other1", "other2"}) queue_.Done(id, 1, At(3));
    queue_.Done("ben0", 1, At(10));
  }
  static std::vector<std::string> Ids(const std::vector<ReadyTask>& tasks) {
    std::vector<std::string> ids;
    for (const ReadyTask& task : tasks) ids.push_back(task.id);
    return ids;
  }

  ReadyQueue queue_;
  std::optional<Timestamp> look_again_;  // as the last TakeTimings was told
  int64_t number_ = 0;
};

TEST_F(ReadyQueueTest, GivesByPriorityThenAge) {
  for (const char* id : {"a", "b"}) queue_.Add(Task(id));
  queue_.Add(Task("urgent", "ada", 1));
  queue_.Add(Task("c"));
  EXPECT_THAT(Take(3), ElementsAre("urgent", "a", "b"));
  EXPECT_THAT(Take(3), ElementsAre("c"));
  EXPECT_THAT(Take(3), IsEmpty());
}

TEST_F(ReadyQueueTest, GivesATaskOnceHoweverOftenItIsAdded) {
  const ReadyTask task = Task("a");
  queue_.Add(task);
  queue_.Add(task);
  EXPECT_EQ(queue_.size(TaskKind::kBuild), 1);
  EXPECT_THAT(Take(9), ElementsAre("a"));
}

TEST_F(ReadyQueueTest, GivesWhatMatchesExactly) {
  // Every combination of capability and requirement, against the rule as it is written down.
  int matches = 0;
  for (const std::string need_target : {"HOST", "CUDA"})
    for (const std::string need_arch : {"", "a"})
      for (const std::string need_uuid : {"", "U"})
        for (const std::string arch : {"", "a", "b"})
          for (const std::string uuid : {"", "U", "V"}) {
            const Capability capability{"HOST", arch, uuid};
            ReadyTask task = Task("t");
            task.kind = TaskKind::kTime;
            task.requirements = {need_target, need_arch, need_uuid};
            ReadyQueue queue;
            queue.Add(task);
            const bool given = !queue.Take({"w", TaskKind::kTime, {capability}, 1}, At(1)).empty();
            EXPECT_EQ(given, Matches(capability, task.requirements))
                << need_target << "/" << need_arch << "/" << need_uuid << " on " << arch << "/" << uuid;
            EXPECT_TRUE(queue.Take({"w", TaskKind::kBuild, {capability}, 1}, At(1)).empty())
                << "another kind";
            matches += given ? 1 : 0;
          }
  EXPECT_GT(matches, 0);
}

TEST_F(ReadyQueueTest, ALaneBelongsToOneWorkerAtATime) {
  for (const char* id : {"a", "b", "c"}) queue_.Add(Timing(id, "GPU-1"));
  queue_.Add(Timing("d", "GPU-2"));
  EXPECT_THAT(TakeTimings({"GPU-1"}, 1), ElementsAre("a"));
  EXPECT_THAT(TakeTimings({"GPU-1", "GPU-2"}, 9, "other"), ElementsAre("d"));
  EXPECT_THAT(TakeTimings({"GPU-1"}, 1), ElementsAre("b")) << "for when the first is done";
  queue_.Ended("a", 1);
  EXPECT_THAT(TakeTimings({"GPU-1"}, 9, "other"), IsEmpty());
  queue_.Ended("b", 1);
  EXPECT_THAT(TakeTimings({"GPU-1"}, 9, "other"), ElementsAre("c"));
}

TEST_F(ReadyQueueTest, ALaneThatWasTakenBeforeARestartStaysTaken) {
  queue_.Resume(Timing("old", "GPU-1"), "w");
  queue_.Add(Timing("new", "GPU-1"));
  EXPECT_THAT(TakeTimings({"GPU-1"}, 9, "other"), IsEmpty());
  queue_.Ended("old", 1);
  EXPECT_THAT(TakeTimings({"GPU-1"}, 9, "other"), ElementsAre("new"));
}

TEST_F(ReadyQueueTest, ALaneIsKeptForTheUserWhoseTimingHasEndedThere) {
  ASSERT_NO_FATAL_FAILURE(BenHasHadLess());
  EXPECT_THAT(TakeTimings({"GPU-1"}, 1, "w", At(10)), IsEmpty());
  EXPECT_EQ(look_again_, At(10) + ReadyQueue::kLongestKept);
  EXPECT_THAT(TakeTimings({"GPU-1"}, 1, "other", At(10)), IsEmpty()) << "whoever offers it";
  queue_.Add(Timing("ben1", "GPU-1", "ben"));
  EXPECT_THAT(TakeTimings({"GPU-1"}, 1, "w", At(10) + milliseconds(2)), ElementsAre("ben1"));
}

TEST_F(ReadyQueueTest, ALaneIsNotKeptForLong) {
  ASSERT_NO_FATAL_FAILURE(BenHasHadLess());
  EXPECT_THAT(TakeTimings({"GPU-1"}, 1, "w", At(10) + milliseconds(99)), IsEmpty());
  EXPECT_THAT(TakeTimings({"GPU-1"}, 1, "w", At(10) + milliseconds(100)), ElementsAre("hog1"));
  EXPECT_EQ(look_again_, std::nullopt);
}

TEST_F(ReadyQueueTest, ALaneIsKeptForAQuarterOfShortTimings) {
  ASSERT_NO_FATAL_FAILURE(BenHasHadLess());
  queue_.Add(Timing("ben1", "GPU-1", "ben"));
  ASSERT_THAT(TakeTimings({"GPU-1"}, 1), ElementsAre("ben1"));
  for (int i = 0; i < 300; ++i) {  // until they are what is usual
    queue_.Add(Timing("short", "GPU-2", "hog"));
    ASSERT_THAT(TakeTimings({"GPU-2"}, 1), ElementsAre("short"));
    queue_.Done("short", 0.04, At(11));
  }
  queue_.Done("ben1", 0.04, At(20));
  EXPECT_THAT(TakeTimings({"GPU-1"}, 1, "w", At(20)), IsEmpty());
  ASSERT_TRUE(look_again_.has_value());
  EXPECT_GE(*look_again_ - At(20), milliseconds(10));
  EXPECT_LT(*look_again_ - At(20), milliseconds(11));
}

TEST_F(ReadyQueueTest, ALaneIsKeptForNobodyWhoHasHadMore) {
  ASSERT_NO_FATAL_FAILURE(BenHasHadLess());
  queue_.LetGo("GPU-1", "ben", At(10));
  ASSERT_THAT(TakeTimings({"GPU-1"}, 1), ElementsAre("hog1"));
  queue_.Add(Timing("ben1", "GPU-1", "ben"));
  queue_.Done("hog1", 1, At(11));
  EXPECT_THAT(TakeTimings({"GPU-1"}, 1, "w", At(11)), ElementsAre("ben1"));
}

TEST_F(ReadyQueueTest, ALaneThatIsKeptKeepsNoOtherBack) {
  ASSERT_NO_FATAL_FAILURE(BenHasHadLess());
  queue_.Add(Timing("hog elsewhere", "GPU-2", "hog"));
  queue_.Add(Task("a build", "hog"));
  EXPECT_THAT(TakeTimings({"GPU-1", "GPU-2"}, 2, "w", At(10)), ElementsAre("hog elsewhere"));
  EXPECT_EQ(look_again_, At(10) + ReadyQueue::kLongestKept);
  EXPECT_THAT(Take(1, "w", At(10)), ElementsAre("a build"));
}

TEST_F(ReadyQueueTest, ALaneIsNotKeptFromWhomWouldComeFirstAnyway) {
  // Eva has had as much as Ben. Hog goes on elsewhere until whoever asks now has had more than she.
  queue_.Add(Timing("eva0", "GPU-3", "eva"));
  queue_.Add(Timing("ben0", "GPU-1", "ben"));
  ASSERT_THAT(TakeTimings({"GPU-3"}, 1), ElementsAre("eva0"));
  ASSERT_THAT(TakeTimings({"GPU-1"}, 1), ElementsAre("ben0"));
  queue_.Done("eva0", 1.5, At(2));
  queue_.Add(Timing("eva1", "GPU-1", "eva"));
  for (int i = 0; i < 9; ++i) {
    queue_.Add(Timing("hog" + std::to_string(i), "GPU-2", "hog"));
    ASSERT_EQ(TakeTimings({"GPU-2"}, 1).size(), 1u);
    queue_.Done("hog" + std::to_string(i), 1, At(2));
  }
  queue_.Done("ben0", 1, At(10));
  EXPECT_THAT(TakeTimings({"GPU-1"}, 1, "w", At(10)), ElementsAre("eva1"));
}

// Hog has had more elsewhere, and this job of his would wait until Ben's has ended.
TEST_F(ReadyQueueTest, ALaneIsNotKeptForEver) {
  ASSERT_NO_FATAL_FAILURE(BenHasHadLess());
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < ReadyQueue::kMostRefusals; ++i) {
      ASSERT_THAT(TakeTimings({"GPU-1"}, 1, "w", At(10)), IsEmpty()) << round << ", " << i;
      queue_.Add(Timing("ben again", "GPU-1", "ben"));
      ASSERT_THAT(TakeTimings({"GPU-1"}, 1, "w", At(10)), ElementsAre("ben again"));
      queue_.Done("ben again", 0.001, At(10));
    }
    const std::string hogs = "hog" + std::to_string(round + 1);
    ASSERT_THAT(TakeTimings({"GPU-1"}, 1, "w", At(10)), ElementsAre(hogs));
    queue_.Add(Timing("ben after", "GPU-1", "ben"));
    queue_.Done(hogs, 1, At(10));
    ASSERT_THAT(TakeTimings({"GPU-1"}, 1, "w", At(10)), ElementsAre("ben after"));
    queue_.Done("ben after", 0.001, At(10));
  }
}

// Whoever they are kept for.
TEST_F(ReadyQueueTest, ALaneIsNotKeptForEverForOneAfterTheOther) {
  ASSERT_NO_FATAL_FAILURE(BenHasHadLess());
  for (int i = 0; i < ReadyQueue::kMostRefusals; ++i) {
    ASSERT_THAT(TakeTimings({"GPU-1"}, 1, "w", At(10)), IsEmpty()) << i;
    const std::string next = i % 2 == 0 ? "eva" : "ben";
    queue_.Add(Timing("next", "GPU-1", next));
    ASSERT_THAT(TakeTimings({"GPU-1"}, 1, "w", At(10)), ElementsAre("next"));
    queue_.Done("next", 0.001, At(10));
  }
  EXPECT_THAT(TakeTimings({"GPU-1"}, 1, "w", At(10)), ElementsAre("hog1"));
}

TEST_F(ReadyQueueTest, ALaneIsKeptOnAndOnFromNobody) {
  ASSERT_NO_FATAL_FAILURE(BenHasHadLess());
  for (int i = 1; i < 9; ++i) queue_.Remove("hog" + std::to_string(i));
  for (int i = 0; i < ReadyQueue::kMostRefusals; ++i) {
    queue_.Add(Timing("ben again", "GPU-1", "ben"));
    ASSERT_THAT(TakeTimings({"GPU-1"}, 1, "w", At(10)), ElementsAre("ben again"));
    queue_.Done("ben again", 0.001, At(10));
  }
  queue_.Add(Timing("hog1", "GPU-1", "hog"));
  EXPECT_THAT(TakeTimings({"GPU-1"}, 1, "w", At(10)), IsEmpty()) << "the first time that it is asked for";
}

TEST_F(ReadyQueueTest, ALaneThatIsGivenAlreadyGetsNoSecondTask) {
  queue_.Add(Timing("one", "GPU-1"));
  queue_.Add(Timing("two", "GPU-2"));
  ReadyQueue::Demand demand{.worker = "w", .kind = TaskKind::kTime, .count = 2, .given = {"GPU-1"}};
  for (const char* uuid : {"GPU-1", "GPU-2"})
    demand.capabilities.push_back(Capability{"CUDA", "sm_90", uuid});
  const std::vector<ReadyTask> taken = queue_.Take(demand, At(0));
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0].id, "two");
}

TEST_F(ReadyQueueTest, ALaneInWhichSomethingRunsIsNotKept) {
  ASSERT_NO_FATAL_FAILURE(BenHasHadLess());
  queue_.LetGo("GPU-1", "ben", At(10));
  queue_.Add(Timing("ben1", "GPU-1", "ben"));
  ASSERT_THAT(TakeTimings({"GPU-1"}, 1, "w", At(10)), ElementsAre("ben1"));
  ASSERT_THAT(TakeTimings({"GPU-1"}, 1, "w", At(10)), ElementsAre("hog1")) << "for when it is done";
  queue_.Done("ben1", 1, At(11));
  EXPECT_THAT(TakeTimings({"GPU-1"}, 1, "w", At(11)), ElementsAre("hog2"));
}

TEST_F(ReadyQueueTest, WhatEndsWithItsJobKeepsNoLane) {
  ASSERT_NO_FATAL_FAILURE(BenHasHadLess());
  EXPECT_FALSE(queue_.LetGo("GPU-1", "hog", At(10))) << "of his jobs another ends";
  EXPECT_THAT(TakeTimings({"GPU-1"}, 1, "w", At(10)), IsEmpty());
  EXPECT_TRUE(queue_.LetGo("GPU-1", "ben", At(10)));
  EXPECT_FALSE(queue_.LetGo("GPU-1", "ben", At(10))) << "it is kept no more";
  EXPECT_THAT(TakeTimings({"GPU-1"}, 1, "w", At(10)), ElementsAre("hog1"));

  queue_.Add(Timing("cancelled", "GPU-1", "ben"));
  queue_.Ended("hog1", 1);
  ASSERT_THAT(TakeTimings({"GPU-1"}, 1, "w", At(12)), ElementsAre("cancelled"));
  queue_.Ended("cancelled", 1);
  EXPECT_THAT(TakeTimings({"GPU-1"}, 1, "w", At(12)), ElementsAre("hog2")) << "a job that was cancelled";
}

TEST_F(ReadyQueueTest, WhatALaneIsKeptForIsCharged) {
  // Ben asks for his next timing only when GPU-1 is no longer kept for it.
  double bens = 0, hogs = 0;  // seconds that they have kept the lane
  Timestamp now = At(1);
  const auto ask = [&](const std::string& user) {
    queue_.Add(Timing(user + std::to_string(number_), "GPU-1", user));
  };
  ask("ben");
  for (int i = 0; i < 300; ++i) ask("hog");
  while (hogs < 20) {
    const std::vector<std::string> taken = TakeTimings({"GPU-1"}, 1, "w", now);
    if (taken.empty()) {
      ASSERT_TRUE(look_again_.has_value());
      bens += std::chrono::duration<double>(*look_again_ - now).count();
      now = *look_again_;
      ask("ben");
      continue;
    }
    const bool is_ben = taken[0].starts_with("ben");
    const milliseconds took(is_ben ? 10 : 100);
    (is_ben ? bens : hogs) += took.count() / 1000.0;
    now += took;
    queue_.Done(taken[0], took.count() / 1000.0, now);
    if (!is_ben) ask("ben");
  }
  EXPECT_NEAR(bens / hogs, 1, 0.1);
}

TEST_F(ReadyQueueTest, WhatIsGivenBackIsAsIfItHadNotBeenTaken) {
  queue_.Add(Timing("a", "GPU-1"));
  const std::vector<ReadyTask> taken =
      queue_.Take({"w", TaskKind::kTime, {{"CUDA", "sm_90", "GPU-1"}}, 1}, At(1));
  queue_.GiveBack(taken);
  EXPECT_EQ(queue_.size(TaskKind::kTime), 1);
  EXPECT_THAT(TakeTimings({"GPU-1"}, 1), ElementsAre("a"));
}

TEST_F(ReadyQueueTest, SomeWorkersMustNotHaveSomeTasks) {
  ReadyTask confirming = Task("confirming");
  confirming.avoid_worker = "w";
  ReadyTask failed = Task("failed");
  failed.failed_worker = "w";
  failed.not_before = At(10);
  queue_.Add(confirming);
  queue_.Add(failed);
  queue_.Add(Task("free"));
  EXPECT_THAT(Take(9, "w", At(9)), ElementsAre("free"));
  EXPECT_THAT(Take(9, "w", At(10)), ElementsAre("failed"));
  EXPECT_THAT(Take(9, "other", At(9)), ElementsAre("confirming"));
}

TEST_F(ReadyQueueTest, UsersTakeTurnsHoweverMuchTheyAskFor) {
  for (int i = 0; i < 100; ++i) queue_.Add(Task("noisy" + std::to_string(i), "noisy"));
  EXPECT_THAT(Take(5), ElementsAre("noisy0", "noisy1", "noisy2", "noisy3", "noisy4"));
  for (int i = 0; i < 3; ++i) queue_.Add(Task("quiet" + std::to_string(i), "quiet"));
  EXPECT_THAT(Take(6), UnorderedElementsAre("quiet0", "noisy5", "quiet1", "noisy6", "quiet2", "noisy7"));
}

TEST_F(ReadyQueueTest, PrioritiesAreAUsersOwn) {
  queue_.Add(Task("loud1", "loud", 100));
  queue_.Add(Task("calm1", "calm"));
  queue_.Add(Task("loud2", "loud", 100));
  queue_.Add(Task("calm2", "calm"));
  EXPECT_THAT(Take(2), UnorderedElementsAre("loud1", "calm1"));
}

TEST_F(ReadyQueueTest, LongTasksCountForMore) {
  for (int i = 0; i < 40; ++i) {
    queue_.Add(Task("long" + std::to_string(i), "long"));
    queue_.Add(Task("short" + std::to_string(i), "short"));
  }
  int of_long = 0;
  for (int i = 0; i < 33; ++i) {
    const std::string id = Take(1).at(0);
    const bool is_long = id[0] == 'l';
    of_long += is_long ? 1 : 0;
    queue_.Ended(id, is_long ? 10 : 1);
  }
  EXPECT_EQ(of_long, 3) << "three of ten seconds, thirty of one";
}

TEST_F(ReadyQueueTest, NobodySavesUpWhatHeDidNotUse) {
  queue_.Add(Task("early", "late_comer"));
  EXPECT_THAT(Take(1), ElementsAre("early"));
  queue_.Ended("early", 1);
  for (int i = 0; i < 50; ++i) queue_.Add(Task("steady" + std::to_string(i), "steady"));
  for (int i = 0; i < 20; ++i) queue_.Ended(Take(1).at(0), 1);
  for (int i = 0; i < 50; ++i) queue_.Add(Task("late" + std::to_string(i), "late_comer"));
  int of_steady = 0;
  for (int i = 0; i < 10; ++i) {
    const std::string id = Take(1).at(0);
    of_steady += id[0] == 's' ? 1 : 0;
    queue_.Ended(id, 1);
  }
  EXPECT_GE(of_steady, 4);
  EXPECT_LE(of_steady, 6);
}

TEST_F(ReadyQueueTest, WhatWaitsTooLongIsTakenOut) {
  ReadyTask limited = Task("limited");
  limited.queue_until = At(10);
  queue_.Add(limited);
  queue_.Add(Task("patient"));
  EXPECT_THAT(queue_.TakeOverdue(At(10)), IsEmpty());
  EXPECT_THAT(Ids(queue_.TakeOverdue(At(11))), ElementsAre("limited"));
  EXPECT_THAT(queue_.TakeOverdue(At(99)), IsEmpty());
  EXPECT_THAT(Take(9), ElementsAre("patient"));
}

TEST_F(ReadyQueueTest, RemovedTasksAreGone) {
  queue_.Add(Task("a"));
  queue_.Remove("a");
  queue_.Remove("a");
  EXPECT_THAT(Take(9), IsEmpty());
  EXPECT_THAT(queue_.Summary(), IsEmpty());
}

TEST_F(ReadyQueueTest, TheSummarySaysWhatWaits) {
  for (const char* id : {"a", "b"}) queue_.Add(Timing(id, "GPU-1"));
  for (const char* id : {"c", "d", "e"}) queue_.Add(Task(id));
  ASSERT_EQ(queue_.Summary().size(), 2u);
  EXPECT_EQ(queue_.Summary()[0].count, 3) << "builds";
  EXPECT_EQ(queue_.Summary()[1].count, 2);
  EXPECT_THAT(TakeTimings({"GPU-1"}, 2), ElementsAre("a")) << "one for a lane";
  EXPECT_THAT(TakeTimings({"GPU-1"}, 2), ElementsAre("b"));
  EXPECT_EQ(queue_.Summary().size(), 1u);
}

}  // namespace
}  // namespace fusion
