#include "server/dispatch/task_queue.h"

#include <spdlog/spdlog.h>

#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "library/catalog/sha256.h"

namespace fusion {

namespace {

// Beyond the deadline of a build, for fetching and storing what belongs to it.
constexpr std::chrono::seconds kBuildSlack{60};
// What workers allow a build that says no deadline (worker/build/builder.h).
constexpr double kDefaultBuildDeadlineSeconds = 120;
// A timing that is not done after this long is not going to be.
constexpr std::chrono::hours kLongestTiming{1};

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
  const bool parsed = task.kind == TaskKind::kBuild
                          ? assignment.mutable_build()->ParseFromString(task.payload)
                          : assignment.mutable_time()->ParseFromString(task.payload);
  if (!parsed) return absl::DataLossError(absl::StrCat(task.id, ": the stored work cannot be read"));
  return assignment;
}

absl::Status TaskQueue::Start() {
  absl::StatusOr<std::vector<TaskRecord>> live = store_.LiveTasks();
  if (!live.ok()) return live.status();
  for (const TaskRecord& task : *live) {
    if (task.state == TaskState::kQueued)
      ready_.Add(ReadyTaskOf(task));
    else
      ready_.Resume(ReadyTaskOf(task), task.worker);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<EnsuredTask>> TaskQueue::Ensure(const std::string& job, const std::vector<TaskSpec>& specs) {
  absl::StatusOr<std::vector<EnsuredTask>> ensured = store_.EnsureTasks(job, specs, clock_.Now());
  if (!ensured.ok()) return ensured;
  for (const EnsuredTask& known : *ensured)
    if (known.created) ready_.Add(ReadyTaskOf(known.task));
  return ensured;
}

absl::StatusOr<std::vector<v1::Assignment>> TaskQueue::Claim(const v1::SynchronizeRequest& request,
                                                             TaskKind kind, int count) {
  std::vector<v1::Assignment> assignments;
  if (count <= 0) return assignments;
  const std::vector<ReadyTask> taken = ready_.Take(
      {.worker = request.worker(),
       .kind = kind,
       .capabilities = CapabilitiesFor(kind, request),
       .count = count},
      clock_.Now());
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
    absl::StatusOr<v1::Assignment> assignment = AssignmentOf(task);
    if (!assignment.ok()) {
      // Nobody can run it: it fails after a few claims instead of stopping the queue.
      absl::StatusOr<Reported> released =
          Release(TaskHold{task.id, task.fence}, task, std::string(assignment.status().message()));
      if (!released.ok()) return released.status();
      continue;
    }
    assignments.push_back(*std::move(assignment));
  }
  // Cancelled in between.
  for (const std::string& id : ids)
    if (!claimed.contains(id)) ready_.Released(id);
  return assignments;
}

void TaskQueue::LeaveHolder(const TaskRecord& task) {
  // What a worker failed at, or took with it, is not charged to the user.
  ready_.Released(task.id);
  if (task.state == TaskState::kQueued) ready_.Add(ReadyTaskOf(task));
  if (IsTerminal(task.state)) board_.Ended(task.key);
}

absl::StatusOr<TaskQueue::Reported> TaskQueue::Release(const TaskHold& hold, const TaskRecord& task,
                                                       const std::string& message) {
  absl::StatusOr<std::optional<TaskRecord>> released = store_.ReleaseTask(hold, message, clock_.Now());
  if (!released.ok()) return released.status();
  if (!released->has_value()) return Reported::kUnwanted;
  spdlog::warn("{}: worker {} failed: {}", task.id, task.worker, message);
  LeaveHolder(**released);
  return Reported::kRequeued;
}

absl::StatusOr<TaskQueue::Reported> TaskQueue::Report(const std::string& worker, const v1::TaskReport& report) {
  const TaskHold hold{report.task(), report.fence()};
  absl::StatusOr<TaskRecord> task = store_.GetTask(report.task());
  if (absl::IsNotFound(task.status())) return Reported::kUnwanted;
  if (!task.ok()) return task.status();
  if (task->worker != worker) return Reported::kUnwanted;

  if (report.state_case() == v1::TaskReport::kFailure) return Release(hold, *task, report.failure());
  const bool is_build = report.state_case() == v1::TaskReport::kBuild;
  if (is_build != (task->kind == TaskKind::kBuild)) {
    return Release(hold, *task, "the worker sent a result of another kind of task");
  }

  const Timestamp now = clock_.Now();
  absl::StatusOr<bool> stored = false;
  if (is_build) {
    const v1::BuildResult& result = report.build();
    if (result.outcome() == v1::OK) {
      absl::StatusOr<bool> uploaded = store_.HasBlob(result.binary());
      if (!uploaded.ok()) return uploaded.status();
      if (!*uploaded) {
        return Release(hold, *task,
                       absl::StrCat("the worker reported the binary '", result.binary(),
                                    "' without having uploaded it"));
      }
    }
    const BuildRecord build{.key = task->key,
                            .outcome = v1::Outcome_Name(result.outcome()),
                            .binary_digest = result.outcome() == v1::OK ? result.binary() : "",
                            .log = result.log(),
                            // The database takes no NaN where it wants a number.
                            .seconds = std::isfinite(result.seconds()) ? result.seconds() : 0,
                            .created = now};
    // Other outcomes depend on the machine or the moment and are not for other jobs.
    const bool lasting = result.outcome() == v1::OK || result.outcome() == v1::COMPILE_ERROR;
    stored = store_.CompleteTask(hold, result.SerializeAsString(), lasting ? &build : nullptr, now);
  } else {
    stored = store_.CompleteTask(hold, report.time().SerializeAsString(), nullptr, now);
  }
  if (!stored.ok()) return stored.status();
  if (!*stored) return Reported::kUnwanted;
  ready_.Ended(task->id, std::chrono::duration<double>(now - task->updated).count());
  board_.Ended(task->key);
  return Reported::kStored;
}

absl::Status TaskQueue::Renew(const v1::SynchronizeRequest& request) {
  std::set<std::pair<std::string, int64_t>> listed;
  for (const v1::TaskReport& report : request.tasks()) {
    const auto state = report.state_case();
    if (state == v1::TaskReport::kRunning || state == v1::TaskReport::STATE_NOT_SET)
      listed.emplace(report.task(), report.fence());
  }
  if (listed.empty()) return absl::OkStatus();
  // Neither others' tasks nor thousands that nobody knows are written about.
  absl::StatusOr<std::vector<TaskRecord>> held = store_.HeldTasks(request.worker(), request.instance());
  if (!held.ok()) return held.status();
  std::vector<TaskHold> holds;
  for (const TaskRecord& task : *held)
    if (listed.contains({task.id, task.fence})) holds.push_back(TaskHold{task.id, task.fence});
  // Those that are lost are told by the answer to this call, which looks at them again.
  return store_.RenewLeases(holds, clock_.Now(), lease_).status();
}

bool TaskQueue::AnnounceLost(const std::vector<TaskRecord>& lost) {
  for (const TaskRecord& task : lost) {
    spdlog::warn("{}: worker {} was lost, {}", task.id, task.worker,
                 task.state == TaskState::kFailed ? "given up" : "queued again");
    LeaveHolder(task);
  }
  return !lost.empty();
}

absl::StatusOr<bool> TaskQueue::ExpireLeases(std::set<std::string>* lost_workers) {
  const Timestamp now = clock_.Now();
  absl::StatusOr<std::vector<TaskRecord>> lost = store_.ExpireLeases(now);
  if (!lost.ok()) return lost.status();
  // One that is there, but took too long over a task, is not lost.
  for (const TaskRecord& task : *lost)
    if (task.hold_until == Timestamp() || now <= task.hold_until) lost_workers->insert(task.worker);
  return AnnounceLost(*lost);
}

absl::StatusOr<bool> TaskQueue::LoseTasksOfEarlierInstances(const v1::SynchronizeRequest& request) {
  if (absl::Status noted = store_.AddWorkerProcess(request.worker(), request.instance()); !noted.ok()) return noted;
  absl::StatusOr<std::vector<TaskRecord>> lost =
      store_.LoseTasks(request.worker(), request.instance(), clock_.Now());
  if (!lost.ok()) return lost.status();
  return AnnounceLost(*lost);
}

absl::StatusOr<bool> TaskQueue::LoseTasksOf(const std::string& worker) {
  // No process has an empty name.
  absl::StatusOr<std::vector<TaskRecord>> lost = store_.LoseTasks(worker, "", clock_.Now());
  if (!lost.ok()) return lost.status();
  return AnnounceLost(*lost);
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
  absl::StatusOr<std::vector<TaskRecord>> cancelled = store_.CancelJobTasks(job, clock_.Now());
  if (!cancelled.ok()) return cancelled.status();
  std::vector<std::string> holders;
  for (const TaskRecord& task : *cancelled) {
    // As it was before.
    if (task.state == TaskState::kRunning) {
      holders.push_back(task.worker);
      ready_.Ended(task.id, std::chrono::duration<double>(clock_.Now() - task.updated).count());
    }
    ready_.Remove(task.id);
    board_.Ended(task.key);
  }
  return holders;
}

}  // namespace fusion
