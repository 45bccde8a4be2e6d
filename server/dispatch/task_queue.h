// Applies the queue's rules in terms of the protocol: makes tasks of messages and assignments for workers,
// and takes reports.
#pragma once

#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "db/store/store.h"
#include "fusion/v1/worker.pb.h"
#include "server/dispatch/capabilities.h"
#include "server/dispatch/claim_book.h"
#include "server/dispatch/completion_board.h"
#include "server/dispatch/ready_queue.h"

namespace fusion {

// Describes a build, keyed by its content.
TaskSpec SpecOf(const v1::BuildTask& task);
// Describes a timing, keyed by job and content: no two jobs share timings, but they survive a restart.
TaskSpec SpecOf(const std::string& job, const v1::TimeTask& task, const v1::DeviceDescription& device);

// Returns the result of a task that has ended as DONE or FAILED. A FAILED one has the outcome WORKER_LOST and
// says why.
absl::StatusOr<v1::BuildResult> BuildResultOf(const TaskRecord& task);
absl::StatusOr<v1::TimeResult> TimeResultOf(const TaskRecord& task);

// Thread safe.
class TaskQueue {
 public:
  // `resume`: tasks that earlier processes queued wait for workers at once; otherwise only once they are
  // asked for again.
  TaskQueue(Store& store, const Clock& clock, CompletionBoard& board, std::chrono::microseconds lease,
            bool resume = true)
      : store_(store), clock_(clock), board_(board), lease_(lease), resume_(resume) {}

  // Takes up what the store says is queued or running. Call once, before all others.
  absl::Status Start();
  // Calls Store::EnsureTasks; tasks that are new or left by an earlier process wait for a worker from now on.
  absl::StatusOr<std::vector<EnsuredTask>> Ensure(const std::string& job, const std::vector<TaskSpec>& specs);
  // Returns up to `count` new assignments, in the order of the ready queue, which are recorded before.
  // given and look_again are those of ReadyQueue.
  absl::StatusOr<std::vector<v1::Assignment>> Claim(const v1::SynchronizeRequest& request, TaskKind kind,
                                                    int count, const std::set<std::string>& given,
                                                    std::optional<Timestamp>* look_again);
  // Does what ReadyQueue::LetGo does.
  bool LetGo(const std::string& device_uuid, const std::string& user) {
    return ready_.LetGo(device_uuid, user, clock_.Now());
  }
  // Returns an assignment made earlier, to be sent again.
  absl::StatusOr<v1::Assignment> AssignmentOf(const TaskRecord& task) const;

  enum class Reported {
    kStored,    // the result is in the store
    kUnwanted,  // the task is no longer this worker's; the report changed nothing
    kRequeued,  // the worker failed; the task waits for another, or is FAILED
  };
  // Takes finished reports, all that can be in one change of the store; returns what was done in their order.
  // An error means that nothing of that report is stored: the worker must report it again. kUnwanted when
  // another worker has the task: fences say which assignment a report is of, not which worker may report.
  std::vector<absl::StatusOr<Reported>> Report(const std::string& worker,
                                               const std::vector<const v1::TaskReport*>& reports);
  // Returns the tasks that this process of the worker holds, in the order of queueing.
  std::vector<ClaimedTask> HeldBy(const v1::SynchronizeRequest& request) const {
    return book_.HeldBy(request.worker(), request.instance());
  }
  // Extends the leases of the tasks that the request lists as running and that this worker has.
  absl::Status Renew(const v1::SynchronizeRequest& request);

  // The next three return whether there is something new for other workers: a task queued again, or, when it
  // was given up, the lane of its device. ExpireLeases also tells which workers let leases end.
  absl::StatusOr<bool> ExpireLeases(std::set<std::string>* lost_workers);
  absl::StatusOr<bool> LoseTasksOfEarlierInstances(const v1::SynchronizeRequest& request);
  // The worker is gone, whichever process of it held tasks.
  absl::StatusOr<bool> LoseTasksOf(const std::string& worker);
  // Gives up tasks that have waited for a worker too long.
  absl::Status ExpireQueued();

  // Returns the tasks that could be given out now if there were a worker.
  std::vector<ReadyQueue::Waiting> Waiting() const { return ready_.Summary(); }

  // Cancels the tasks that no other job wants; returns the workers that hold such tasks.
  absl::StatusOr<std::vector<std::string>> CancelJob(const std::string& job);

 private:
  absl::StatusOr<Reported> Release(const TaskHold& hold, const std::string& message);
  // Returns the completion that a finished report asks for. FAILED_PRECONDITION: the worker has failed; says
  // why.
  absl::StatusOr<TaskCompletion> CompletionOf(const v1::TaskReport& report, const ClaimedTask& task,
                                              Timestamp now);
  void HasEnded(const ClaimedTask& task, Timestamp now);
  // A task that a worker held is queued again, or has ended.
  void LeaveHolder(const TaskRecord& task);
  bool AnnounceLost(const std::vector<TaskRecord>& lost);
  // Returns whether a job of this process wants the task; true for all tasks if resume_.
  bool IsWanted(const TaskRecord& task) const;

  Store& store_;
  const Clock& clock_;
  CompletionBoard& board_;
  const std::chrono::microseconds lease_;
  const bool resume_;
  mutable std::mutex wanted_mutex_;
  std::set<std::string> wanted_;  // keys that were asked for, unless resume_; guarded by wanted_mutex_
  ReadyQueue ready_;
  ClaimBook book_;
};

}  // namespace fusion
