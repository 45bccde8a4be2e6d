// Tasks: what jobs want, and which of it is known already.
#include <utility>

#include "absl/strings/str_cat.h"
#include "db/store/sqlite_store.h"

namespace fusion {

const char kTaskColumns[] =
    "tasks.id, tasks.key, tasks.kind, tasks.state, tasks.target, tasks.arch, tasks.device_uuid, "
    "tasks.priority, "
    "tasks.fence, tasks.attempts, tasks.failures, tasks.lost_workers, tasks.worker, tasks.instance, "
    "tasks.lease_until_micros, tasks.failure, tasks.failure_message, tasks.created_micros, "
    "tasks.updated_micros, "
    "tasks.payload, tasks.result, tasks.number";

namespace {

TaskState ParseTaskState(const std::string& name) {
  for (TaskState state : {TaskState::kQueued, TaskState::kRunning, TaskState::kDone, TaskState::kFailed}) {
    if (name == TaskStateName(state)) return state;
  }
  return TaskState::kCancelled;
}

TaskFailure ParseTaskFailure(const std::string& name) {
  if (name == "WORKER_LOST") return TaskFailure::kWorkerLost;
  return name == "WORKER_FAILED" ? TaskFailure::kWorkerFailed : TaskFailure::kNone;
}

// NOT_FOUND, or FAILED_PRECONDITION when the job has ended.
absl::Status CheckJobIsLive(Database& database, const std::string& job) {
  Statement query = database.Query("SELECT state FROM jobs WHERE id = ?1", job);
  absl::StatusOr<bool> row = query.Step();
  if (!row.ok()) return row.status();
  if (!*row) return absl::NotFoundError(absl::StrCat("there is no job ", job));
  const std::string state = query.Text(0);
  if (state == "QUEUED" || state == "RUNNING") return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("job ", job, " has ended as ", state, "; it takes no new tasks"));
}

struct KnownTask {
  int64_t number = 0;  // 0: none
  TaskRecord task;
};

// The task that makes it needless to queue the work again (the rules stand at Store::EnsureTasks).
absl::StatusOr<KnownTask> FindKnownTask(Database& database, const std::string& job, const TaskSpec& spec) {
  Statement query = database.Query(
      absl::StrCat(
          "SELECT ", kTaskColumns,
          " FROM tasks WHERE key = ?1 AND (state IN ('QUEUED', 'RUNNING')"
          " OR (state IN ('DONE', 'FAILED') AND EXISTS (SELECT 1 FROM job_tasks WHERE job = ?2 AND task = "
          "number))"
          " OR (state = 'DONE' AND kind = 'BUILD' AND EXISTS (SELECT 1 FROM builds WHERE builds.key = ?1"
          "     AND (binary_digest = '' OR binary_digest IN (SELECT digest FROM blobs)))))"
          " ORDER BY number DESC LIMIT 1"),
      spec.key, job);
  absl::StatusOr<bool> row = query.Step();
  if (!row.ok()) return row.status();
  if (!*row) return KnownTask{};
  return KnownTask{query.Int(21), ReadTask(query)};
}

absl::StatusOr<KnownTask> InsertTask(Database& database, const TaskSpec& spec, Timestamp now) {
  KnownTask inserted;
  TaskRecord& task = inserted.task;
  task.id = RandomId("tasks/");
  task.key = spec.key;
  task.kind = spec.kind;
  task.requirements = spec.requirements;
  task.priority = spec.priority;
  task.payload = spec.payload;
  task.created = task.updated = now;
  absl::Status done =
      database
          .Query(
              "INSERT INTO tasks (id, key, kind, state, target, arch, device_uuid, priority, fence, "
              "attempts, "
              "failures, lost_workers, worker, instance, lease_until_micros, not_before_micros, failure, "
              "failure_message, created_micros, updated_micros, payload, result) "
              "VALUES (?1, ?2, ?3, 'QUEUED', ?4, ?5, ?6, ?7, 0, 0, 0, 0, '', '', 0, 0, '', '', ?8, ?8, ?9, "
              "x'')",
              task.id, task.key, std::string_view(TaskKindName(task.kind)), task.requirements.target,
              task.requirements.arch, task.requirements.device_uuid, task.priority, now, Bytes{task.payload})
          .Run();
  if (!done.ok()) return done;
  inserted.number = database.last_row_number();
  return inserted;
}

// Cancels the QUEUED and RUNNING tasks for which `condition` (with ?1 = job) holds; returns them as they
// were.
absl::StatusOr<std::vector<TaskRecord>> CancelWhere(Database& database, const char* condition,
                                                    const std::string& job, Timestamp now) {
  std::vector<TaskRecord> cancelled;
  {
    Statement query = database.Query(
        absl::StrCat("SELECT ", kTaskColumns, " FROM tasks WHERE state IN ('QUEUED', 'RUNNING') AND ",
                     condition, " ORDER BY number"),
        job);
    absl::Status read = query.ForEach([&] { cancelled.push_back(ReadTask(query)); });
    if (!read.ok()) return read;
  }
  for (const TaskRecord& task : cancelled) {
    absl::Status done =
        database
            .Query("UPDATE tasks SET state = 'CANCELLED', updated_micros = ?2 WHERE id = ?1", task.id, now)
            .Run();
    if (!done.ok()) return done;
  }
  return cancelled;
}

}  // namespace

const char* TaskKindName(TaskKind kind) { return kind == TaskKind::kBuild ? "BUILD" : "TIME"; }

TaskRecord ReadTask(const Statement& row) {
  TaskRecord task;
  task.id = row.Text(0);
  task.key = row.Text(1);
  task.kind = row.Text(2) == "BUILD" ? TaskKind::kBuild : TaskKind::kTime;
  task.state = ParseTaskState(row.Text(3));
  task.requirements = TaskRequirements{row.Text(4), row.Text(5), row.Text(6)};
  task.priority = static_cast<int>(row.Int(7));
  task.fence = row.Int(8);
  task.attempts = static_cast<int>(row.Int(9));
  task.failures = static_cast<int>(row.Int(10));
  task.lost_workers = static_cast<int>(row.Int(11));
  task.worker = row.Text(12);
  task.instance = row.Text(13);
  task.lease_until = row.Time(14);
  task.failure = ParseTaskFailure(row.Text(15));
  task.failure_message = row.Text(16);
  task.created = row.Time(17);
  task.updated = row.Time(18);
  task.payload = row.Text(19);
  task.result = row.Text(20);
  return task;
}

absl::StatusOr<std::vector<EnsuredTask>> SqliteStore::EnsureTasks(const std::string& job,
                                                                  const std::vector<TaskSpec>& specs,
                                                                  Timestamp now) {
  return Write([&](Database& database) -> absl::StatusOr<std::vector<EnsuredTask>> {
    absl::Status live = CheckJobIsLive(database, job);
    if (!live.ok()) return live;
    std::vector<EnsuredTask> ensured;
    ensured.reserve(specs.size());
    for (const TaskSpec& spec : specs) {
      absl::StatusOr<KnownTask> task = FindKnownTask(database, job, spec);
      if (!task.ok()) return task.status();
      const bool create = task->number == 0;
      if (create) {
        task = InsertTask(database, spec, now);
        if (!task.ok()) return task.status();
      }
      absl::Status linked =
          database.Query("INSERT OR IGNORE INTO job_tasks (job, task) VALUES (?1, ?2)", job, task->number)
              .Run();
      if (!linked.ok()) return linked;
      ensured.push_back(EnsuredTask{std::move(task->task), create});
    }
    return ensured;
  });
}

absl::StatusOr<TaskRecord> SqliteStore::GetTask(const std::string& id) {
  Reader reader(*this);
  Statement query = reader->Query(absl::StrCat("SELECT ", kTaskColumns, " FROM tasks WHERE id = ?1"), id);
  absl::StatusOr<bool> row = query.Step();
  if (!row.ok()) return row.status();
  if (!*row) return absl::NotFoundError(absl::StrCat("there is no task ", id));
  return ReadTask(query);
}

absl::StatusOr<std::vector<TaskRecord>> SqliteStore::CancelJobTasks(const std::string& job, Timestamp now) {
  return Write([&](Database& database) {
    return CancelWhere(
        database,
        "number IN (SELECT task FROM job_tasks WHERE job = ?1) AND NOT EXISTS "
        "(SELECT 1 FROM job_tasks JOIN jobs ON jobs.id = job_tasks.job WHERE job_tasks.task = tasks.number "
        "AND jobs.id <> ?1 AND jobs.state IN ('QUEUED', 'RUNNING'))",
        job, now);
  });
}

absl::StatusOr<std::vector<TaskRecord>> SqliteStore::CancelOrphanTasks(Timestamp now) {
  return Write([&](Database& database) {
    // No job is called "", so the ?1 <> excludes none.
    return CancelWhere(
        database,
        "NOT EXISTS (SELECT 1 FROM job_tasks JOIN jobs ON jobs.id = job_tasks.job "
        "WHERE job_tasks.task = tasks.number AND jobs.id <> ?1 AND jobs.state IN ('QUEUED', 'RUNNING'))",
        "", now);
  });
}

absl::StatusOr<std::string> SqliteStore::JobDevice(const std::string& job) {
  Reader reader(*this);
  Statement query = reader->Query(
      "SELECT device_uuid FROM tasks JOIN job_tasks ON job_tasks.task = tasks.number "
      "WHERE job_tasks.job = ?1 AND kind = 'TIME' AND device_uuid <> '' ORDER BY number DESC LIMIT 1",
      job);
  absl::StatusOr<bool> row = query.Step();
  if (!row.ok()) return row.status();
  return *row ? query.Text(0) : std::string();
}

}  // namespace fusion
