// Attempts of tasks and stages of jobs: what happened when.
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "db/store/sqlite_store.h"

namespace fusion {
namespace {

// In the order that ReadAttempt expects.
constexpr char kAttemptColumns[] =
    "task_attempts.number, tasks.id, task_attempts.kind, task_attempts.fence, task_attempts.worker, "
    "task_attempts.instance, queued_micros, claimed_micros, ended_micros, ended_how, coalesce(ended_order, "
    "0)";

AttemptRecord ReadAttempt(const Statement& row) {
  AttemptRecord attempt;
  attempt.number = row.Int(0);
  attempt.task = row.Text(1);
  attempt.kind = row.Text(2) == "BUILD" ? TaskKind::kBuild : TaskKind::kTime;
  attempt.fence = row.Int(3);
  attempt.worker = row.Text(4);
  attempt.instance = row.Text(5);
  attempt.queued = row.Time(6);
  attempt.claimed = row.Time(7);
  attempt.ended = row.Time(8);
  attempt.ended_how = row.Text(9);
  attempt.ended_order = row.Int(10);
  return attempt;
}

absl::Status ReadStages(Database& database, const std::string& job, std::vector<StageRecord>* stages) {
  Statement query = database.Query(
      "SELECT number, name, started_micros, ended_micros FROM job_stages WHERE job = ?1 ORDER BY number",
      job);
  return query.ForEach([&] {
    stages->push_back({query.Int(0), query.Text(1), query.Time(2), query.Time(3)});
  });
}

absl::Status ReadTasks(Database& database, const std::string& job, std::vector<TracedTask>* tasks) {
  std::map<std::string, size_t> index;
  {
    // Without payload and result, which are large.
    Statement query = database.Query(
        "SELECT id, kind, state, target, arch, device_uuid, failure_message, created_micros, updated_micros "
        "FROM tasks JOIN job_tasks ON job_tasks.task = tasks.number WHERE job_tasks.job = ?1 ORDER BY number",
        job);
    absl::Status read = query.ForEach([&] {
      TracedTask task;
      task.id = query.Text(0);
      task.kind = query.Text(1) == "BUILD" ? TaskKind::kBuild : TaskKind::kTime;
      const std::string state = query.Text(2);
      task.state = TaskState::kCancelled;
      for (TaskState known : {TaskState::kQueued, TaskState::kRunning, TaskState::kDone, TaskState::kFailed})
        if (state == TaskStateName(known)) task.state = known;
      task.requirements = TaskRequirements{query.Text(3), query.Text(4), query.Text(5)};
      task.failure_message = query.Text(6);
      task.created = query.Time(7);
      task.updated = query.Time(8);
      index[task.id] = tasks->size();
      tasks->push_back(std::move(task));
    });
    if (!read.ok()) return read;
  }
  Statement query =
      database.Query(absl::StrCat("SELECT ", kAttemptColumns,
                                  " FROM task_attempts JOIN tasks ON tasks.number = task_attempts.task "
                                  "JOIN job_tasks ON job_tasks.task = tasks.number WHERE job_tasks.job = ?1 "
                                  "ORDER BY task_attempts.number"),
                     job);
  return query.ForEach([&] {
    AttemptRecord attempt = ReadAttempt(query);
    // A task that came between the two reads is in the next answer.
    if (auto found = index.find(attempt.task); found != index.end())
      (*tasks)[found->second].attempts.push_back(std::move(attempt));
  });
}

}  // namespace

absl::Status BeginAttempt(Database& database, const std::string& task) {
  return database
      .Query(
          "INSERT INTO task_attempts (task, fence, kind, worker, instance, queued_micros, claimed_micros) "
          "SELECT number, fence, kind, worker, instance, (SELECT coalesce(max(ended_micros), "
          "tasks.created_micros) FROM task_attempts WHERE task = tasks.number), updated_micros "
          "FROM tasks WHERE id = ?1",
          task)
      .Run();
}

absl::Status EndAttempt(Database& database, const TaskHold& attempt, std::string_view how, Timestamp now) {
  return database
      .Query(
          "UPDATE task_attempts SET ended_micros = ?3, ended_how = ?4, "
          "ended_order = (SELECT coalesce(max(ended_order), 0) + 1 FROM task_attempts) "
          "WHERE task = (SELECT number FROM tasks WHERE id = ?1) AND fence = ?2",
          attempt.task, attempt.fence, now, how)
      .Run();
}

absl::Status SetTraceParent(Database& database, const JobRecord& job) {
  if (job.traceparent.empty()) return absl::OkStatus();
  return database.Query("UPDATE jobs SET traceparent = ?2 WHERE id = ?1", job.id, job.traceparent).Run();
}

absl::StatusOr<JobTraceRecord> SqliteStore::JobTrace(const std::string& job) {
  Reader reader(*this);
  JobTraceRecord trace;
  {
    Statement query = reader->Query("SELECT traceparent FROM jobs WHERE id = ?1", job);
    FUSION_ASSIGN_OR_RETURN(bool row, query.Step());
    if (!row) return absl::NotFoundError(absl::StrCat("there is no job ", job));
    trace.traceparent = query.Text(0);
  }
  FUSION_RETURN_IF_ERROR(ReadStages(*reader, job, &trace.stages));
  FUSION_RETURN_IF_ERROR(ReadTasks(*reader, job, &trace.tasks));
  return trace;
}

absl::StatusOr<int64_t> SqliteStore::BeginStage(const std::string& job, const std::string& name,
                                                Timestamp now) {
  return Write([&](Database& database) -> absl::StatusOr<int64_t> {
    absl::Status inserted = database
                                .Query(
                                    "INSERT INTO job_stages (job, name, started_micros, ended_micros) SELECT "
                                    "id, ?2, ?3, 0 FROM jobs WHERE id = ?1",
                                    job, name, now)
                                .Run();
    if (!inserted.ok()) return inserted;
    if (database.changes() == 0) return absl::NotFoundError(absl::StrCat("there is no job ", job));
    return database.last_row_number();
  });
}

absl::Status SqliteStore::EndStage(int64_t number, Timestamp now) {
  return Write([&](Database& database) {
    return database.Query("UPDATE job_stages SET ended_micros = ?2 WHERE number = ?1", number, now).Run();
  });
}

absl::StatusOr<std::vector<AttemptRecord>> SqliteStore::ClaimsAfter(int64_t number, int limit) {
  Reader reader(*this);
  std::vector<AttemptRecord> attempts;
  Statement query =
      reader->Query(absl::StrCat("SELECT ", kAttemptColumns,
                                 " FROM task_attempts JOIN tasks ON tasks.number = task_attempts.task "
                                 "WHERE task_attempts.number > ?1 ORDER BY task_attempts.number LIMIT ?2"),
                    number, limit);
  absl::Status read = query.ForEach([&] { attempts.push_back(ReadAttempt(query)); });
  if (!read.ok()) return read;
  return attempts;
}

absl::StatusOr<std::vector<AttemptRecord>> SqliteStore::EndsAfter(int64_t ended_order, int limit) {
  Reader reader(*this);
  std::vector<AttemptRecord> attempts;
  Statement query =
      reader->Query(absl::StrCat("SELECT ", kAttemptColumns,
                                 " FROM task_attempts JOIN tasks ON tasks.number = task_attempts.task "
                                 "WHERE ended_order > ?1 ORDER BY ended_order LIMIT ?2"),
                    ended_order, limit);
  absl::Status read = query.ForEach([&] { attempts.push_back(ReadAttempt(query)); });
  if (!read.ok()) return read;
  return attempts;
}

absl::StatusOr<std::pair<int64_t, int64_t>> SqliteStore::LastAttempts() {
  Reader reader(*this);
  FUSION_ASSIGN_OR_RETURN(int64_t claim,
                          reader->Integer("SELECT coalesce(max(number), 0) FROM task_attempts"));
  FUSION_ASSIGN_OR_RETURN(int64_t end,
                          reader->Integer("SELECT coalesce(max(ended_order), 0) FROM task_attempts"));
  return std::make_pair(claim, end);
}

}  // namespace fusion
