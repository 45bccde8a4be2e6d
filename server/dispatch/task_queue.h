// The queue's rules in terms of the protocol: tasks from messages, assignments for workers, what a report
// does.
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

// A build, keyed by its content.
TaskSpec SpecOf(const v1::BuildTask& task);
// A timing, keyed by job and content: timings of one job are never those of another, but survive a restart.
TaskSpec SpecOf(const std::string& job, const v1::TimeTask& task, const v1::DeviceDescription& device);

// The result of a task that has ended as DONE or FAILED. A FAILED one has the outcome WORKER_LOST and says
// why.
absl::StatusOr<v1::BuildResult> BuildResultOf(const TaskRecord& task);
absl::StatusOr<v1::TimeResult> TimeResultOf(const TaskRecord& task);

// Thread safe.
class TaskQueue {
 public:
  // `resume`: what earlier processes have queued waits for workers at once; otherwise not before it is asked
  // for again.
  TaskQueue(Store& store, const Clock& clock, CompletionBoard& board, std::chrono::microseconds lease,
            bool resume = true)
      : store_(store), clock_(clock), board_(board), lease_(lease), resume_(resume) {}

  // Takes up what the store says is queued or running. Call once, before all others.
  absl::Status Start();
  // As Store::EnsureTasks; what is new, or was left by an earlier process, waits for a worker from now on.
  absl::StatusOr<std::vector<EnsuredTask>> Ensure(const std::string& job, const std::vector<TaskSpec>& specs);
  // Up to `count` new assignments, in the order of the ready queue. Recorded before they are returned.
  // given, look_again: as of ReadyQueue.
  absl::StatusOr<std::vector<v1::Assignment>> Claim(const v1::SynchronizeRequest& request, TaskKind kind,
                                                    int count, const std::set<std::string>& given,
                                                    std::optional<Timestamp>* look_again);
  // As ReadyQueue::LetGo.
  bool LetGo(const std::string& device_uuid, const std::string& user) {
    return ready_.LetGo(device_uuid, user, clock_.Now());
  }
  // An assignment made earlier, to be sent again.
  absl::StatusOr<v1::Assignment> AssignmentOf(const TaskRecord& task) const;

  enum class Reported {
    kStored,    // the result is in the store
    kUnwanted,  // the task is no longer this worker's; the report changed nothing
    kRequeued,  // the worker failed; the task waits for another, or is FAILED
  };
  // Takes finished reports, all that can be in one change of the store; returned in their order. An error
  // means that nothing of that one is stored: the worker must report it again. kUnwanted when another worker
  // has the task: fences say which assignment a report is of, not who may report.
  std::vector<absl::StatusOr<Reported>> Report(const std::string& worker,
                                               const std::vector<const v1::TaskReport*>& reports);
  // What this process of the worker holds, in the order of queueing.
  std::vector<ClaimedTask> HeldBy(const v1::SynchronizeRequest& request) const {
    return book_.HeldBy(request.worker(), request.instance());
  }
  // Extends the leases of the tasks that the request lists as running and that this worker has.
  absl::Status Renew(const v1::SynchronizeRequest& request);

  // Each returns whether there is something new for other workers: a task queued again, or, when it was given
  // up, the lane of its device.
  // Also tells which workers let leases end.
  absl::StatusOr<bool> ExpireLeases(std::set<std::string>* lost_workers);
  absl::StatusOr<bool> LoseTasksOfEarlierInstances(const v1::SynchronizeRequest& request);
  // The worker is gone, whichever process of it held tasks.
  absl::StatusOr<bool> LoseTasksOf(const std::string& worker);
  // Gives up tasks that have waited for a worker too long.
  absl::Status ExpireQueued();

  // What could be given out now, were there a worker.
  std::vector<ReadyQueue::Waiting> Waiting() const { return ready_.Summary(); }

  // Cancels what no other job wants; returns the workers that hold such tasks.
  absl::StatusOr<std::vector<std::string>> CancelJob(const std::string& job);

 private:
  absl::StatusOr<Reported> Release(const TaskHold& hold, const std::string& message);
  // The completion that a finished report asks for. FAILED_PRECONDITION: why the worker has failed instead.
  absl::StatusOr<TaskCompletion> CompletionOf(const v1::TaskReport& report, const ClaimedTask& task,
                                              Timestamp now);
  void HasEnded(const ClaimedTask& task, Timestamp now);
  // A task that somebody held is queued again, or has ended.
  void LeaveHolder(const TaskRecord& task);
  bool AnnounceLost(const std::vector<TaskRecord>& lost);
  // Whether a job of this process wants the task, as far as that matters.
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
