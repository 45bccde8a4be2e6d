// The queue of builds and timings: tasks, who holds them, what became of them. Rules for all calls:
// db/store/store.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "db/store/records.h"

namespace fusion {

class TaskStore {
 public:
  virtual ~TaskStore() = default;

  // Makes sure that the work of each spec is done, in progress or queued, and that the job is noted as
  // wanting it. Returns the tasks in the order of specs. This work of the same key is not queued again:
  //   QUEUED or RUNNING for any job; DONE or FAILED for this job; DONE builds of any job that are in the
  //   build cache.
  // Work of an earlier job that FAILED or was CANCELLED is tried anew.
  // NOT_FOUND: no such job. FAILED_PRECONDITION: the job has ended.
  virtual absl::StatusOr<std::vector<EnsuredTask>> EnsureTasks(const std::string& job,
                                                               const std::vector<TaskSpec>& specs,
                                                               Timestamp now) = 0;
  virtual absl::StatusOr<TaskRecord> GetTask(const std::string& id) = 0;
  // Returns the tasks in the order given, without those that are not known; tasks that are DONE have no
  // payload.
  virtual absl::StatusOr<std::vector<TaskRecord>> GetTasks(const std::vector<std::string>& ids) = 0;
  // Returns the QUEUED and RUNNING tasks in the order of queueing, without payload and result: a server takes
  // them up when it starts.
  virtual absl::StatusOr<std::vector<TaskRecord>> LiveTasks() = 0;
  // Gives those of the tasks that are QUEUED to the worker: they become RUNNING with the fence and the
  // attempts raised. Returns them in the order given.
  virtual absl::StatusOr<std::vector<TaskRecord>> ClaimTasks(const std::vector<std::string>& ids,
                                                             const std::string& worker,
                                                             const std::string& instance, Timestamp now,
                                                             std::chrono::microseconds lease) = 0;
  // Makes those of the tasks that are QUEUED FAILED, with kQueueTimeout. Returns them as they now are.
  virtual absl::StatusOr<std::vector<TaskRecord>> FailQueuedTasks(const std::vector<std::string>& ids,
                                                                  const std::string& message,
                                                                  Timestamp now) = 0;
  // Extends the leases of tasks that are still RUNNING with the same fence, not beyond the end of their
  // claims; returns the other holds, whose holder should stop them.
  virtual absl::StatusOr<std::vector<TaskHold>> RenewLeases(const std::vector<TaskHold>& holds, Timestamp now,
                                                            std::chrono::microseconds lease) = 0;
  // Stores the results of tasks that are RUNNING with the fence given, and returns true for these. The others
  // change nothing.
  virtual absl::StatusOr<std::vector<bool>> CompleteTasks(const std::vector<TaskCompletion>& completions,
                                                          Timestamp now) = 0;
  absl::StatusOr<bool> CompleteTask(const TaskCompletion& completion, Timestamp now) {
    FUSION_ASSIGN_OR_RETURN(std::vector<bool> completed, CompleteTasks({completion}, now));
    return completed.front();
  }
  // Notes that the worker could not do the task, through no fault of the task: it is QUEUED again, or FAILED
  // after RetryPolicy::failures. Returns the task as it now is. Unless the task is RUNNING with this fence,
  // returns none and changes nothing.
  virtual absl::StatusOr<std::optional<TaskRecord>> ReleaseTask(const TaskHold& hold,
                                                                const std::string& message,
                                                                Timestamp now) = 0;
  // Takes RUNNING tasks whose lease has ended from their worker: they are QUEUED again, or FAILED after
  // RetryPolicy::lost_workers. Returns them as they now are.
  virtual absl::StatusOr<std::vector<TaskRecord>> ExpireLeases(Timestamp now) = 0;
  // Does what ExpireLeases does, at once, for tasks that earlier processes of this worker held.
  virtual absl::StatusOr<std::vector<TaskRecord>> LoseTasks(const std::string& worker,
                                                            const std::string& new_instance,
                                                            Timestamp now) = 0;
  // Cancels the QUEUED and RUNNING tasks of the job that no other unfinished job wants. Returns them as they
  // were before, so that their holders can be told.
  virtual absl::StatusOr<std::vector<TaskRecord>> CancelJobTasks(const std::string& job, Timestamp now) = 0;
  // Does what CancelJobTasks does, for all tasks that no unfinished job wants.
  virtual absl::StatusOr<std::vector<TaskRecord>> CancelOrphanTasks(Timestamp now) = 0;
  // Call this after a restart of the server. Leases of RUNNING tasks then end at now + grace, so that holders
  // can reconnect, their claims begin anew, and workers that failed a task need not wait for it: the clock
  // may have been set, so what it said before counts for nothing. Returns the number of RUNNING tasks.
  virtual absl::StatusOr<int64_t> AdoptRunning(Timestamp now, std::chrono::microseconds grace) = 0;
  // Returns the device that TIME tasks of the job are bound to, or "" when it has none yet.
  virtual absl::StatusOr<std::string> JobDevice(const std::string& job) = 0;
};

}  // namespace fusion
