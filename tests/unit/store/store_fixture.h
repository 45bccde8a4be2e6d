// A store in a folder of its own, which can be closed and opened again.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>

#include "db/store/store.h"

namespace fusion {

inline Timestamp At(int64_t seconds) { return Timestamp(std::chrono::seconds(seconds)); }

class StoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "fusion_store_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    path_ = folder_ + "/fusion.db";
    Reopen();
  }
  void TearDown() override {
    store_.reset();
    std::filesystem::remove_all(folder_);
  }

  virtual absl::StatusOr<std::unique_ptr<Store>> OpenStore() { return OpenSqliteStore(path_, options_); }
  void Reopen() {
    store_.reset();
    absl::StatusOr<std::unique_ptr<Store>> store = OpenStore();
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }

  // The id of a new job.
  std::string NewJob() {
    absl::StatusOr<CreatedJob> created = store_->CreateJob(JobRecord{}, At(1));
    EXPECT_TRUE(created.ok()) << created.status();
    return created.ok() ? created->job.id : "";
  }
  void EndJob(const std::string& job) {
    JobUpdate update;
    update.state = JobState::kCancelled;
    absl::StatusOr<JobRecord> updated = store_->UpdateJob(job, update, At(2));
    EXPECT_TRUE(updated.ok()) << updated.status();
  }

  static TaskSpec Build(const std::string& key, const std::string& target = "HOST",
                        const std::string& arch = "x86-64") {
    return TaskSpec{key, TaskKind::kBuild, {target, arch, ""}, "source of " + key, 0};
  }
  static TaskSpec Time(const std::string& key, const std::string& uuid) {
    return TaskSpec{key, TaskKind::kTime, {"CUDA", "sm_90", uuid}, "session of " + key, 0};
  }
  TaskRecord Ensure(const std::string& job, const TaskSpec& spec) {
    absl::StatusOr<std::vector<EnsuredTask>> ensured = store_->EnsureTasks(job, {spec}, At(10));
    EXPECT_TRUE(ensured.ok()) << ensured.status();
    return ensured.ok() ? ensured->front().task : TaskRecord{};
  }
  TaskRecord Task(const std::string& id) {
    absl::StatusOr<TaskRecord> task = store_->GetTask(id);
    EXPECT_TRUE(task.ok()) << task.status();
    return task.ok() ? *task : TaskRecord{};
  }
  // Claims the oldest QUEUED tasks of the kind for 15 s.
  std::vector<TaskRecord> ClaimBuilds(const std::string& worker, int count, Timestamp now,
                                      const std::string& instance = "1") {
    return Claim(worker, instance, TaskKind::kBuild, count, now);
  }
  std::vector<TaskRecord> Claim(const std::string& worker, const std::string& instance, TaskKind kind,
                                int count, Timestamp now) {
    absl::StatusOr<std::vector<TaskRecord>> live = store_->LiveTasks();
    EXPECT_TRUE(live.ok()) << live.status();
    if (!live.ok()) return {};
    std::vector<std::string> ids;
    for (const TaskRecord& task : *live)
      if (task.state == TaskState::kQueued && task.kind == kind && static_cast<int>(ids.size()) < count)
        ids.push_back(task.id);
    absl::StatusOr<std::vector<TaskRecord>> claimed =
        store_->ClaimTasks(ids, worker, instance, now, std::chrono::seconds(15));
    EXPECT_TRUE(claimed.ok()) << claimed.status();
    return claimed.ok() ? *claimed : std::vector<TaskRecord>();
  }

  std::string folder_;
  std::string path_;
  StoreOptions options_;
  std::unique_ptr<Store> store_;
};

}  // namespace fusion
