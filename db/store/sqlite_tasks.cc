// Tasks: what jobs want, and which of it is known already.
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/random_id.h"
#include "base/status_macros.h"
#include "db/store/sqlite_store.h"

namespace fusion {

const char kTaskColumns[] =
    "tasks.number, tasks.id, tasks.key, tasks.kind, tasks.state, tasks.target, tasks.arch, "
    "tasks.device_uuid, tasks.user, "
    "tasks.priority, tasks.fence, tasks.attempts, tasks.failures, tasks.lost_workers, tasks.worker, "
    "tasks.instance, "
    "tasks.avoid_worker, tasks.lease_until_micros, tasks.hold_until_micros, tasks.not_before_micros, "
    "tasks.queue_until_micros, tasks.failure, tasks.failure_message, tasks.created_micros, "
    "tasks.updated_micros";
const char kTaskWork[] =
    ", (SELECT traceparent FROM task_work WHERE task = tasks.number), (SELECT payload FROM task_work WHERE "
    "task = tasks.number), "
    "tasks.result";
const char kNoTaskWork[] = ", '', x'', x''";
const char kTaskWorkAsEnded[] =
    ", '', iif(tasks.state = 'DONE', x'', (SELECT payload FROM task_work WHERE task = tasks.number)), "
    "tasks.result";

namespace {

TaskState ParseTaskState(const std::string& name) {
  for (TaskState state : {TaskState::kQueued, TaskState::kRunning, TaskState::kDone, TaskState::kFailed}) {
    if (name == TaskStateName(state)) return state;
  }
  return TaskState::kCancelled;
}

TaskFailure ParseTaskFailure(const std::string& name) {
  if (name == "WORKER_LOST") return TaskFailure::kWorkerLost;
  if (name == "QUEUE_TIMEOUT") return TaskFailure::kQueueTimeout;
  return name == "WORKER_FAILED" ? TaskFailure::kWorkerFailed : TaskFailure::kNone;
}

// A job gives its tasks these values.
struct JobOfTasks {
  std::string user;
  std::string traceparent;
  int priority = 0;
  std::chrono::microseconds queue_limit{0};
};

// Fails with NOT_FOUND, or with FAILED_PRECONDITION when the job has ended.
absl::StatusOr<JobOfTasks> FindLiveJob(Database& database, const std::string& job) {
  Statement query = database.Query(
      "SELECT state, user, traceparent, priority, queue_limit_micros FROM jobs WHERE id = ?1", job);
  FUSION_ASSIGN_OR_RETURN(bool row, query.Step());
  if (!row) return absl::NotFoundError(absl::StrCat("there is no job ", job));
  const std::string state = query.Text(0);
  if (state == "QUEUED" || state == "RUNNING")
    return JobOfTasks{query.Text(1), query.Text(2), static_cast<int>(query.Int(3)),
                      std::chrono::microseconds(query.Int(4))};
  return absl::FailedPreconditionError(
      absl::StrCat("job ", job, " has ended as ", state, "; it takes no new tasks"));
}

// The task that makes it needless to queue the work again (the rules stand at TaskStore::EnsureTasks).
absl::StatusOr<std::optional<TaskRecord>> FindKnownTask(Database& database, const std::string& job,
                                                        const TaskSpec& spec) {
  Statement query = database.Query(
      absl::StrCat(
          "SELECT ", kTaskColumns, kTaskWork,
          " FROM tasks WHERE key = ?1 AND (state IN ('QUEUED', 'RUNNING')"
          " OR (state IN ('DONE', 'FAILED') AND EXISTS (SELECT 1 FROM job_tasks WHERE job = ?2 AND task = "
          "number))"
          " OR (state = 'DONE' AND kind = 'BUILD' AND EXISTS (SELECT 1 FROM builds WHERE builds.key = ?1"
          "     AND (binary_digest = '' OR binary_digest IN (SELECT digest FROM blobs)))))"
          " ORDER BY number DESC LIMIT 1"),
      spec.key, job);
  FUSION_ASSIGN_OR_RETURN(bool row, query.Step());
  if (!row) return std::nullopt;
  return ReadTask(query);
}

absl::StatusOr<TaskRecord> InsertTask(Database& database, const TaskSpec& spec, const JobOfTasks& job,
                                      Timestamp now) {
  TaskRecord task;
  task.id = "tasks/" + RandomHex(2);
  task.key = spec.key;
  task.kind = spec.kind;
  task.requirements = spec.requirements;
  task.user = job.user;
  task.priority = job.priority + spec.priority;
  task.avoid_worker = spec.avoid_worker;
  if (job.queue_limit.count() > 0) task.queue_until = now + job.queue_limit;
  task.traceparent = job.traceparent;
  task.payload = spec.payload;
  task.created = task.updated = now;
  absl::Status done =
      database
          .Query(
              "INSERT INTO tasks (id, key, kind, state, target, arch, device_uuid, user, priority, fence, "
              "attempts, "
              "failures, lost_workers, worker, instance, avoid_worker, lease_until_micros, hold_micros, "
              "hold_until_micros, "
              "not_before_micros, queue_until_micros, failure, failure_message, created_micros, "
              "updated_micros, result) "
              "VALUES (?1, ?2, ?3, 'QUEUED', ?4, ?5, ?6, ?7, ?8, 0, 0, 0, 0, '', '', ?9, 0, ?10, 0, 0, ?11, "
              "'', '', ?12, "
              "?12, x'')",
              task.id, task.key, std::string_view(TaskKindName(task.kind)), task.requirements.target,
              task.requirements.arch, task.requirements.device_uuid, task.user, task.priority,
              task.avoid_worker, spec.hold.count(), task.queue_until, now)
          .Run();
  if (!done.ok()) return done;
  task.number = database.last_row_number();
  done = database
             .Query("INSERT INTO task_work (task, traceparent, payload) VALUES (?1, ?2, ?3)", task.number,
                    task.traceparent, Bytes{task.payload})
             .Run();
  if (!done.ok()) return done;
  return task;
}

// Cancels the QUEUED and RUNNING tasks for which `condition` (with ?1 = job) holds; returns them as they
// were.
absl::StatusOr<std::vector<TaskRecord>> CancelWhere(Database& database, const char* condition,
                                                    const std::string& job, Timestamp now) {
  absl::StatusOr<std::vector<TaskRecord>> cancelled = ReadTasks(database.Query(
      absl::StrCat("SELECT ", kTaskColumns, kNoTaskWork,
                   " FROM tasks WHERE state IN ('QUEUED', 'RUNNING') AND ", condition, " ORDER BY number"),
      job));
  if (!cancelled.ok()) return cancelled;
  for (const TaskRecord& task : *cancelled) {
    absl::Status done =
        database
            .Query("UPDATE tasks SET state = 'CANCELLED', updated_micros = ?2 WHERE id = ?1", task.id, now)
            .Run();
    if (!done.ok()) return done;
    if (task.state == TaskState::kRunning)
      FUSION_RETURN_IF_ERROR(EndAttempt(database, {task.id, task.fence}, "CANCELLED", now));
  }
  return cancelled;
}

}  // namespace

const char* TaskKindName(TaskKind kind) { return kind == TaskKind::kBuild ? "BUILD" : "TIME"; }

TaskRecord ReadTask(const Statement& row) {
  TaskRecord task;
  int column = 0;
  task.number = row.Int(column++);
  task.id = row.Text(column++);
  task.key = row.Text(column++);
  task.kind = row.Text(column++) == "BUILD" ? TaskKind::kBuild : TaskKind::kTime;
  task.state = ParseTaskState(row.Text(column++));
  task.requirements.target = row.Text(column++);
  task.requirements.arch = row.Text(column++);
  task.requirements.device_uuid = row.Text(column++);
  task.user = row.Text(column++);
  task.priority = static_cast<int>(row.Int(column++));
  task.fence = row.Int(column++);
  task.attempts = static_cast<int>(row.Int(column++));
  task.failures = static_cast<int>(row.Int(column++));
  task.lost_workers = static_cast<int>(row.Int(column++));
  task.worker = row.Text(column++);
  task.instance = row.Text(column++);
  task.avoid_worker = row.Text(column++);
  task.lease_until = row.Time(column++);
  task.hold_until = row.Time(column++);
  task.not_before = row.Time(column++);
  task.queue_until = row.Time(column++);
  task.failure = ParseTaskFailure(row.Text(column++));
  task.failure_message = row.Text(column++);
  task.created = row.Time(column++);
  task.updated = row.Time(column++);
  task.traceparent = row.Text(column++);
  task.payload = row.Text(column++);
  task.result = row.Text(column++);
  return task;
}

absl::StatusOr<std::vector<TaskRecord>> ReadTasks(Statement query) {
  std::vector<TaskRecord> tasks;
  absl::Status read = query.ForEach([&] { tasks.push_back(ReadTask(query)); });
  if (!read.ok()) return read;
  return tasks;
}

absl::StatusOr<std::vector<EnsuredTask>> SqliteStore::EnsureTasks(const std::string& job,
                                                                  const std::vector<TaskSpec>& specs,
                                                                  Timestamp now) {
  return Write([&](Database& database) -> absl::StatusOr<std::vector<EnsuredTask>> {
    FUSION_ASSIGN_OR_RETURN(JobOfTasks live, FindLiveJob(database, job));
    std::vector<EnsuredTask> ensured;
    ensured.reserve(specs.size());
    for (const TaskSpec& spec : specs) {
      FUSION_ASSIGN_OR_RETURN(std::optional<TaskRecord> task, FindKnownTask(database, job, spec));
      const bool create = !task.has_value();
      if (create) {
        FUSION_ASSIGN_OR_RETURN(TaskRecord inserted, InsertTask(database, spec, live, now));
        task = std::move(inserted);
      }
      absl::Status linked =
          database.Query("INSERT OR IGNORE INTO job_tasks (job, task) VALUES (?1, ?2)", job, task->number)
              .Run();
      if (!linked.ok()) return linked;
      ensured.push_back(EnsuredTask{*std::move(task), create});
    }
    return ensured;
  });
}

absl::StatusOr<std::vector<TaskRecord>> SqliteStore::LiveTasks() {
  Reader reader(*this);
  return ReadTasks(
      reader->Query(absl::StrCat("SELECT ", kTaskColumns, kNoTaskWork,
                                 " FROM tasks WHERE state IN ('QUEUED', 'RUNNING') ORDER BY number")));
}

absl::StatusOr<TaskRecord> SqliteStore::GetTask(const std::string& id) {
  Reader reader(*this);
  Statement query =
      reader->Query(absl::StrCat("SELECT ", kTaskColumns, kTaskWork, " FROM tasks WHERE id = ?1"), id);
  FUSION_ASSIGN_OR_RETURN(bool row, query.Step());
  if (!row) return absl::NotFoundError(absl::StrCat("there is no task ", id));
  return ReadTask(query);
}

absl::StatusOr<std::vector<TaskRecord>> SqliteStore::GetTasks(const std::vector<std::string>& ids) {
  std::vector<TaskRecord> tasks;
  if (ids.empty()) return tasks;
  Reader reader(*this);
  const std::string sql =
      absl::StrCat("SELECT ", kTaskColumns, kTaskWorkAsEnded, " FROM tasks WHERE id = ?1");
  // One look at the database instead of many.
  absl::Status read = reader->Query("BEGIN").Run();
  if (!read.ok()) return read;
  for (const std::string& id : ids) {
    Statement query = reader->Query(sql, id);
    read = query.ForEach([&] { tasks.push_back(ReadTask(query)); });
    if (!read.ok()) break;
  }
  absl::Status ended = reader->Query("COMMIT").Run();
  if (!read.ok()) return read;
  if (!ended.ok()) return ended;
  return tasks;
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
