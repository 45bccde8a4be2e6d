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
  // wanting it. Returned in the order of specs. Known work, of the same key, that is not queued again:
  //   QUEUED or RUNNING for any job; DONE or FAILED for this job; DONE builds of any job that are in the
  //   build cache.
  // Work of an earlier job that FAILED or was CANCELLED is tried anew.
  // NOT_FOUND: no such job. FAILED_PRECONDITION: the job has ended.
  virtual absl::StatusOr<std::vector<EnsuredTask>> EnsureTasks(const std::string& job,
                                                               const std::vector<TaskSpec>& specs,
                                                               Timestamp now) = 0;
  virtual absl::StatusOr<TaskRecord> GetTask(const std::string& id) = 0;
  // In the order given, those that are not known left out; without payload where they are DONE.
  virtual absl::StatusOr<std::vector<TaskRecord>> GetTasks(const std::vector<std::string>& ids) = 0;
  // QUEUED and RUNNING tasks in the order of queueing, without payload and result: what a server takes up
  // when it starts.
  virtual absl::StatusOr<std::vector<TaskRecord>> LiveTasks() = 0;
  // Gives those of the tasks that are QUEUED to the worker: they become RUNNING with the fence and the
  // attempts raised. Returned in the order given.
  virtual absl::StatusOr<std::vector<TaskRecord>> ClaimTasks(const std::vector<std::string>& ids,
                                                             const std::string& worker,
                                                             const std::string& instance, Timestamp now,
                                                             std::chrono::microseconds lease) = 0;
  // Those of the tasks that are QUEUED become FAILED with kQueueTimeout. Returns them as they now are.
  virtual absl::StatusOr<std::vector<TaskRecord>> FailQueuedTasks(const std::vector<std::string>& ids,
                                                                  const std::string& message,
                                                                  Timestamp now) = 0;
  // Extends the leases of those still RUNNING with the same fence, not beyond the end of their claims;
  // returns the others, which their holder should stop.
  virtual absl::StatusOr<std::vector<TaskHold>> RenewLeases(const std::vector<TaskHold>& holds, Timestamp now,
                                                            std::chrono::microseconds lease) = 0;
  // Stores the results of those that are RUNNING with the fence given; true for these. The others change
  // nothing.
  virtual absl::StatusOr<std::vector<bool>> CompleteTasks(const std::vector<TaskCompletion>& completions,
                                                          Timestamp now) = 0;
  absl::StatusOr<bool> CompleteTask(const TaskCompletion& completion, Timestamp now) {
    FUSION_ASSIGN_OR_RETURN(std::vector<bool> completed, CompleteTasks({completion}, now));
    return completed.front();
  }
  // The worker could not do it, through no fault of the task: QUEUED again, or FAILED after
  // RetryPolicy::failures. Returns the task as it now is; none, and changes nothing, unless it is RUNNING
  // with this fence.
  virtual absl::StatusOr<std::optional<TaskRecord>> ReleaseTask(const TaskHold& hold,
                                                                const std::string& message,
                                                                Timestamp now) = 0;
  // RUNNING tasks whose lease has ended lose their worker: QUEUED again, or FAILED after
  // RetryPolicy::lost_workers. Returns them as they now are.
  virtual absl::StatusOr<std::vector<TaskRecord>> ExpireLeases(Timestamp now) = 0;
  // The same at once, for tasks that earlier processes of this worker held.
  virtual absl::StatusOr<std::vector<TaskRecord>> LoseTasks(const std::string& worker,
                                                            const std::string& new_instance,
                                                            Timestamp now) = 0;
  // CANCELs the QUEUED and RUNNING tasks of the job that no other unfinished job wants. Returns them as they
  // were before, so that their holders can be told.
  virtual absl::StatusOr<std::vector<TaskRecord>> CancelJobTasks(const std::string& job, Timestamp now) = 0;
  // The same for all tasks that no unfinished job wants.
  virtual absl::StatusOr<std::vector<TaskRecord>> CancelOrphanTasks(Timestamp now) = 0;
  // After a restart of the server: leases of RUNNING tasks end at now + grace, so that holders can reconnect,
  // and their claims begin anew, and workers that failed a task need not wait for it; what the clock said
  // before counts for nothing, it may have been set. Returns the number of RUNNING tasks.
  virtual absl::StatusOr<int64_t> AdoptRunning(Timestamp now, std::chrono::microseconds grace) = 0;
  // The device that TIME tasks of the job are bound to, or "" when it has none yet.
  virtual absl::StatusOr<std::string> JobDevice(const std::string& job) = 0;
};

}  // namespace fusion
