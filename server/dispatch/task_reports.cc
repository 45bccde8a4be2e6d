// Implements how TaskQueue takes reports of workers on the tasks that they hold.
#include <spdlog/spdlog.h>

#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/dispatch/task_queue.h"

namespace fusion {

absl::StatusOr<TaskQueue::Reported> TaskQueue::Release(const TaskHold& hold, const std::string& message) {
  FUSION_ASSIGN_OR_RETURN(std::optional<TaskRecord> released,
                          store_.ReleaseTask(hold, message, clock_.Now()));
  if (!released.has_value()) return Reported::kUnwanted;
  spdlog::warn("{}: worker {} failed: {}", hold.task, released->worker, message);
  LeaveHolder(*released);
  return Reported::kRequeued;
}

absl::StatusOr<TaskCompletion> TaskQueue::CompletionOf(const v1::TaskReport& report, const ClaimedTask& task,
                                                       Timestamp now) {
  const bool is_build = report.state_case() == v1::TaskReport::kBuild;
  if (is_build != (task.kind == TaskKind::kBuild))
    return absl::FailedPreconditionError("the worker sent a result of another kind of task");
  TaskCompletion completion{.hold = {task.id, task.fence}};
  if (!is_build) {
    completion.result = report.time().SerializeAsString();
    return completion;
  }
  const v1::BuildResult& result = report.build();
  completion.result = result.SerializeAsString();
  if (result.outcome() == v1::OK) {
    absl::StatusOr<bool> uploaded = store_.HasBlob(result.binary());
    if (!uploaded.ok()) return absl::Status(absl::StatusCode::kInternal, uploaded.status().message());
    if (!*uploaded)
      return absl::FailedPreconditionError(
          absl::StrCat("the worker reported the binary '", result.binary(), "' without having uploaded it"));
  }
  // Other outcomes depend on the machine or the moment and are not for other jobs.
  if (result.outcome() == v1::OK || result.outcome() == v1::COMPILE_ERROR)
    completion.build = BuildRecord{.key = task.key,
                                   .outcome = v1::Outcome_Name(result.outcome()),
                                   .binary_digest = result.outcome() == v1::OK ? result.binary() : "",
                                   .log = result.log(),
                                   // The database takes no NaN where it wants a number.
                                   .seconds = std::isfinite(result.seconds()) ? result.seconds() : 0,
                                   .created = now};
  return completion;
}

void TaskQueue::HasEnded(const ClaimedTask& task, Timestamp now) {
  book_.Ended(task.worker, task.id, task.fence);
  ready_.Done(task.id, std::chrono::duration<double>(now - task.claimed).count(), now);
  board_.Ended(task.key);
}

std::vector<absl::StatusOr<TaskQueue::Reported>> TaskQueue::Report(
    const std::string& worker, const std::vector<const v1::TaskReport*>& reports) {
  const Timestamp now = clock_.Now();
  std::vector<absl::StatusOr<Reported>> outcomes(reports.size(), Reported::kUnwanted);
  std::vector<TaskCompletion> completions;
  std::vector<std::pair<size_t, ClaimedTask>> completed;  // places in outcomes, and what is completed
  for (size_t i = 0; i < reports.size(); ++i) {
    const v1::TaskReport& report = *reports[i];
    std::optional<ClaimedTask> task = book_.Find(worker, report.task(), report.fence());
    if (!task.has_value()) continue;
    const TaskHold hold{task->id, task->fence};
    if (report.state_case() == v1::TaskReport::kFailure) {
      outcomes[i] = Release(hold, report.failure());
      continue;
    }
    absl::StatusOr<TaskCompletion> completion = CompletionOf(report, *task, now);
    if (completion.ok()) {
      completions.push_back(*std::move(completion));
      completed.emplace_back(i, *std::move(task));
    } else if (absl::IsFailedPrecondition(completion.status())) {
      outcomes[i] = Release(hold, std::string(completion.status().message()));
    } else {
      outcomes[i] = completion.status();
    }
  }
  absl::StatusOr<std::vector<bool>> stored = store_.CompleteTasks(completions, now);
  for (size_t i = 0; i < completions.size(); ++i) {
    const auto& [place, task] = completed[i];
    // One that the store cannot take does not keep it from taking the others.
    absl::StatusOr<bool> done = false;
    if (stored.ok())
      done = (*stored)[i];
    else if (completions.size() > 1)
      done = store_.CompleteTask(completions[i], now);
    else
      done = stored.status();
    if (!done.ok()) {
      outcomes[place] = done.status();
    } else if (*done) {
      HasEnded(task, now);
      outcomes[place] = Reported::kStored;
    }
  }
  return outcomes;
}

}  // namespace fusion
