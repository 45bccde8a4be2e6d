#include "server/dispatch/task_queue.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "base/status_macros.h"

namespace fusion {

namespace {

// Time beyond the deadline of a build, for fetching and storing what belongs to it.
constexpr std::chrono::seconds kBuildSlack{60};
// Workers allow this to a build that says no deadline (worker/build/builder.h).
constexpr double kDefaultBuildDeadlineSeconds = 120;
// A timing that is not done after this long is not going to be.
constexpr std::chrono::hours kLongestTiming{1};
// At most so many tasks are queued in one change of the store, for which others wait.
constexpr size_t kSpecsOfChange = 64;

}  // namespace

TaskSpec SpecOf(const v1::BuildTask& task) {
  const double seconds = task.deadline_seconds() > 0 ? task.deadline_seconds() : kDefaultBuildDeadlineSeconds;
  return TaskSpec{.key = task.key(),
                  .kind = TaskKind::kBuild,
                  .requirements = {v1::Target_Name(task.target()), task.arch(), ""},
                  .payload = task.SerializeAsString(),
                  .hold = kBuildSlack + std::chrono::microseconds(static_cast<int64_t>(seconds * 1e6))};
}

TaskSpec SpecOf(const std::string& job, const v1::TimeTask& task, const v1::DeviceDescription& device) {
  v1::TimeTask bound = task;
  bound.set_device_uuid(device.uuid());
  TaskSpec spec{.kind = TaskKind::kTime,
                .requirements = {v1::Target_Name(device.target()), device.arch(), device.uuid()},
                .payload = bound.SerializeAsString(),
                .hold = kLongestTiming};
  spec.key = absl::StrCat("time:", job, ":", Sha256Hex(spec.payload));
  return spec;
}

absl::StatusOr<v1::BuildResult> BuildResultOf(const TaskRecord& task) {
  v1::BuildResult result;
  if (task.state == TaskState::kFailed) {
    result.set_outcome(v1::WORKER_LOST);
    result.set_log(task.failure_message);
    if (task.failure == TaskFailure::kWorkerFailed)
      result.set_log(absl::StrCat("given up: workers failed at it ", task.failures, " times; the last one, ",
                                  task.worker, ": ", task.failure_message));
    return result;
  }
  if (!result.ParseFromString(task.result)) {
    return absl::DataLossError(absl::StrCat(task.id, ": the stored result is no BuildResult"));
  }
  return result;
}

absl::StatusOr<v1::TimeResult> TimeResultOf(const TaskRecord& task) {
  v1::TimeResult result;
  if (task.state != TaskState::kFailed) {
    if (result.ParseFromString(task.result)) return result;
    return absl::DataLossError(absl::StrCat(task.id, ": the stored result is no TimeResult"));
  }
  v1::TimeTask work;
  if (!work.ParseFromString(task.payload)) {
    return absl::DataLossError(absl::StrCat(task.id, ": the stored work is no TimeTask"));
  }
  const auto fail = [&](const std::string& name, v1::ProgramMeasurement* measurement) {
    measurement->set_name(name);
    measurement->set_outcome(v1::WORKER_LOST);
    measurement->set_message(task.failure_message);
  };
  result.set_failure(task.failure_message);
  fail(work.session().unfused().name(), result.mutable_unfused());
  for (const v1::Program& program : work.programs()) fail(program.name(), result.add_programs());
  return result;
}

absl::StatusOr<v1::Assignment> TaskQueue::AssignmentOf(const TaskRecord& task) const {
  v1::Assignment assignment;
  assignment.set_task(task.id);
  assignment.set_fence(task.fence);
  assignment.set_lease_seconds(std::chrono::duration<double>(lease_).count());
  assignment.set_traceparent(task.traceparent);
  const bool parsed = task.kind == TaskKind::kBuild
                          ? assignment.mutable_build()->ParseFromString(task.payload)
                          : assignment.mutable_time()->ParseFromString(task.payload);
  if (!parsed) return absl::DataLossError(absl::StrCat(task.id, ": the stored work cannot be read"));
  return assignment;
}

absl::Status TaskQueue::Start() {
  FUSION_ASSIGN_OR_RETURN(std::vector<TaskRecord> live, store_.LiveTasks());
  for (const TaskRecord& task : live) {
    if (task.state == TaskState::kQueued) {
      if (resume_) ready_.Add(ReadyTaskOf(task));
    } else {
      ready_.Resume(ReadyTaskOf(task), task.worker);
      book_.Claimed(ClaimedTaskOf(task));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<EnsuredTask>> TaskQueue::Ensure(const std::string& job,
                                                           const std::vector<TaskSpec>& specs) {
  if (!resume_) {
    std::lock_guard lock(
        wanted_mutex_);  // before the store is asked, or one that is lost meanwhile is missed
    for (const TaskSpec& spec : specs) wanted_.insert(spec.key);
  }
  std::vector<EnsuredTask> ensured;
  ensured.reserve(specs.size());
  for (size_t begin = 0; begin < specs.size(); begin += kSpecsOfChange) {
    const auto first = specs.begin() + begin;
    const auto last = first + std::min(kSpecsOfChange, specs.size() - begin);
    absl::StatusOr<std::vector<EnsuredTask>> known = store_.EnsureTasks(job, {first, last}, clock_.Now());
    if (!known.ok()) {
      // The job does not go on; nobody needs the first part of its tasks.
      if (absl::Status cancelled = CancelJob(job).status(); !cancelled.ok())
        spdlog::error("{}: tasks not cancelled: {}", job, cancelled.ToString());
      return known.status();
    }
    for (EnsuredTask& task : *known) {
      if (task.created || (!resume_ && task.task.state == TaskState::kQueued))
        ready_.Add(ReadyTaskOf(task.task));
      ensured.push_back(std::move(task));
    }
  }
  return ensured;
}

absl::StatusOr<std::vector<v1::Assignment>> TaskQueue::Claim(const v1::SynchronizeRequest& request,
                                                             TaskKind kind, int count,
                                                             const std::set<std::string>& given,
                                                             std::optional<Timestamp>* look_again) {
  std::vector<v1::Assignment> assignments;
  if (count <= 0) return assignments;
  const std::vector<ReadyTask> taken = ready_.Take({.worker = request.worker(),
                                                    .kind = kind,
                                                    .capabilities = CapabilitiesFor(kind, request),
                                                    .count = count,
                                                    .given = given},
                                                   clock_.Now(), look_again);
  if (taken.empty()) return assignments;
  std::vector<std::string> ids;
  for (const ReadyTask& task : taken) ids.push_back(task.id);
  absl::StatusOr<std::vector<TaskRecord>> tasks =
      store_.ClaimTasks(ids, request.worker(), request.instance(), clock_.Now(), lease_);
  if (!tasks.ok()) {
    ready_.GiveBack(taken);
    return tasks.status();
  }
  std::set<std::string> claimed;
  for (const TaskRecord& task : *tasks) {
    claimed.insert(task.id);
    book_.Claimed(ClaimedTaskOf(task));
  }
  for (const TaskRecord& task : *tasks) {
    absl::StatusOr<v1::Assignment> assignment = AssignmentOf(task);
    if (!assignment.ok()) {
      // Nobody can run it: it fails after a few claims instead of stopping the queue.
      FUSION_RETURN_IF_ERROR(
          Release(TaskHold{task.id, task.fence}, std::string(assignment.status().message())).status());
      continue;
    }
    assignments.push_back(*std::move(assignment));
  }
  // These tasks were cancelled in between.
  for (const std::string& id : ids)
    if (!claimed.contains(id)) ready_.Released(id);
  return assignments;
}

void TaskQueue::LeaveHolder(const TaskRecord& task) {
  // A task that a worker failed at, or took with it, is not charged to the user.
  ready_.Released(task.id);
  book_.Ended(task.worker, task.id, task.fence);
  if (task.state == TaskState::kQueued && IsWanted(task)) ready_.Add(ReadyTaskOf(task));
  if (IsTerminal(task.state)) board_.Ended(task.key);
}

absl::Status TaskQueue::Renew(const v1::SynchronizeRequest& request) {
  std::set<std::pair<std::string, int64_t>> listed;
  for (const v1::TaskReport& report : request.tasks()) {
    const auto state = report.state_case();
    if (state == v1::TaskReport::kRunning || state == v1::TaskReport::STATE_NOT_SET)
      listed.emplace(report.task(), report.fence());
  }
  if (listed.empty()) return absl::OkStatus();
  // The store writes neither tasks of other workers nor thousands that are unknown.
  std::vector<TaskHold> holds;
  for (const ClaimedTask& task : HeldBy(request))
    if (listed.contains({task.id, task.fence})) holds.push_back(TaskHold{task.id, task.fence});
  // The answer to this call tells the worker of lost tasks: it looks at them again.
  return store_.RenewLeases(holds, clock_.Now(), lease_).status();
}

bool TaskQueue::IsWanted(const TaskRecord& task) const {
  if (resume_) return true;
  std::lock_guard lock(wanted_mutex_);
  return wanted_.contains(task.key);
}

bool TaskQueue::AnnounceLost(const std::vector<TaskRecord>& lost) {
  for (const TaskRecord& task : lost) {
    // A task that no job of this process has asked for is worth no warning.
    spdlog::log(IsWanted(task) ? spdlog::level::warn : spdlog::level::debug, "{}: worker {} was lost, {}",
                task.id, task.worker, task.state == TaskState::kFailed ? "given up" : "queued again");
    LeaveHolder(task);
  }
  return !lost.empty();
}

absl::StatusOr<bool> TaskQueue::ExpireLeases(std::set<std::string>* lost_workers) {
  const Timestamp now = clock_.Now();
  FUSION_ASSIGN_OR_RETURN(std::vector<TaskRecord> lost, store_.ExpireLeases(now));
  // A worker that is there, but took too long over a task, is not lost.
  for (const TaskRecord& task : lost)
    if (task.hold_until == Timestamp() || now <= task.hold_until) lost_workers->insert(task.worker);
  return AnnounceLost(lost);
}

absl::StatusOr<bool> TaskQueue::LoseTasksOfEarlierInstances(const v1::SynchronizeRequest& request) {
  FUSION_RETURN_IF_ERROR(store_.AddWorkerProcess(request.worker(), request.instance()));
  FUSION_ASSIGN_OR_RETURN(std::vector<TaskRecord> lost,
                          store_.LoseTasks(request.worker(), request.instance(), clock_.Now()));
  return AnnounceLost(lost);
}

absl::StatusOr<bool> TaskQueue::LoseTasksOf(const std::string& worker) {
  // No process has an empty name.
  FUSION_ASSIGN_OR_RETURN(std::vector<TaskRecord> lost, store_.LoseTasks(worker, "", clock_.Now()));
  return AnnounceLost(lost);
}

absl::Status TaskQueue::ExpireQueued() {
  const std::vector<ReadyTask> overdue = ready_.TakeOverdue(clock_.Now());
  if (overdue.empty()) return absl::OkStatus();
  std::vector<std::string> ids;
  for (const ReadyTask& task : overdue) ids.push_back(task.id);
  absl::StatusOr<std::vector<TaskRecord>> failed =
      store_.FailQueuedTasks(ids, "no worker took it within the time that it may wait", clock_.Now());
  if (!failed.ok()) {
    ready_.GiveBack(overdue);
    return failed.status();
  }
  for (const TaskRecord& task : *failed) {
    spdlog::warn("{}: waited too long for a worker", task.id);
    board_.Ended(task.key);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> TaskQueue::CancelJob(const std::string& job) {
  FUSION_ASSIGN_OR_RETURN(std::vector<TaskRecord> cancelled, store_.CancelJobTasks(job, clock_.Now()));
  std::vector<std::string> holders;
  for (const TaskRecord& task : cancelled) {
    // This is the state before it was cancelled.
    if (task.state == TaskState::kRunning) {
      holders.push_back(task.worker);
      book_.Ended(task.worker, task.id, task.fence);
      ready_.Ended(task.id, std::chrono::duration<double>(clock_.Now() - task.updated).count());
    }
    ready_.Remove(task.id);
    board_.Ended(task.key);
  }
  return holders;
}

}  // namespace fusion
