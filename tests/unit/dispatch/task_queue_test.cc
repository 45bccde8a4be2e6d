#include "server/dispatch/task_queue.h"

#include <gmock/gmock.h>

#include "tests/unit/dispatch/dispatch_fixture.h"

namespace fusion {
namespace {

TEST(TaskQueueTest, MatchingAgreesWithTheStore) {
  // Every combination of capability and requirement, by Matches and by a claim from a real store.
  std::string folder = ::testing::TempDir() + "fusion_matching_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  absl::StatusOr<std::unique_ptr<Store>> store = OpenSqliteStore(folder + "/fusion.db");
  ASSERT_TRUE(store.ok()) << store.status();
  const Timestamp now(std::chrono::seconds(1));
  int matches = 0;
  for (const std::string need_target : {"HOST", "CUDA"}) {
    for (const std::string need_arch : {"", "a"}) {
      for (const std::string need_uuid : {"", "U"}) {
        for (const std::string arch : {"", "a", "b"}) {
          for (const std::string uuid : {"", "U", "V"}) {
            const Capability capability{"HOST", arch, uuid};
            const TaskRequirements requirements{need_target, need_arch, need_uuid};
            const std::string job = (*store)->CreateJob(JobRecord{}, now)->job.id;
            const TaskSpec spec{"key", TaskKind::kTime, requirements, "payload", 0};
            ASSERT_TRUE((*store)->EnsureTasks(job, {spec}, now).ok());
            absl::StatusOr<std::vector<TaskRecord>> claimed = (*store)->ClaimTasks(
                "w", "1", {capability}, TaskKind::kTime, 1, now, std::chrono::seconds(15));
            ASSERT_TRUE(claimed.ok()) << claimed.status();
            EXPECT_EQ(claimed->size() == 1, Matches(capability, requirements))
                << need_target << "/" << need_arch << "/" << need_uuid << " on " << arch << "/" << uuid;
            matches += Matches(capability, requirements) ? 1 : 0;
            ASSERT_TRUE((*store)->CancelJobTasks(job, now).ok());
          }
        }
      }
    }
  }
  EXPECT_GT(matches, 0);
  store->reset();
  std::filesystem::remove_all(folder);
}

TEST(TaskQueueTest, CudaBuildsNeedNoParticularDevice) {
  const std::vector<Capability> build =
      BuildCapabilities({CudaDevice("G1"), CudaDevice("G2", "sm_80"), HostDevice()});
  ASSERT_EQ(build.size(), 2u);
  EXPECT_TRUE(Matches(build[0], {"CUDA", "sm_70", ""}));
  EXPECT_TRUE(Matches(build[1], {"HOST", "x86-64-v4", ""}));
  EXPECT_FALSE(Matches(build[1], {"HOST", "x86-64-v3", ""}));
  EXPECT_EQ(TimeCapabilities({CudaDevice("G1"), CudaDevice("G2", "sm_80"), HostDevice()}).size(), 3u);
}

TEST(TaskQueueTest, ResultsOfFailedTasksSayWhy) {
  TaskRecord task;
  task.state = TaskState::kFailed;
  task.failure_message = "why";
  task.payload = Timing("p").SerializeAsString();
  EXPECT_EQ(BuildResultOf(task)->outcome(), v1::WORKER_LOST);
  EXPECT_EQ(BuildResultOf(task)->log(), "why");
  EXPECT_EQ(TimeResultOf(task)->failure(), "why");
  EXPECT_EQ(TimeResultOf(task)->unfused().name(), "unfused");
  EXPECT_EQ(TimeResultOf(task)->programs(0).message(), "why");
}

TEST(TaskQueueTest, DamagedResultsAreAnError) {
  TaskRecord task;
  task.state = TaskState::kDone;
  task.result = "\xff\xff\xff";
  EXPECT_TRUE(absl::IsDataLoss(BuildResultOf(task).status()));
  EXPECT_TRUE(absl::IsDataLoss(TimeResultOf(task).status()));
}

}  // namespace
}  // namespace fusion
