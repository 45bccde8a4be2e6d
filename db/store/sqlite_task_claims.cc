// Tasks in the hands of workers: claims, leases, results, losses.
//
//   QUEUED --claim--> RUNNING --result--> DONE
//      ^                 |
//      +--- failure, ----+----> FAILED, when that has happened too often
//           lost worker         (QUEUED and RUNNING can also become CANCELLED: sqlite_tasks.cc)
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "db/store/sqlite_store.h"

namespace fusion {
namespace {

// The tasks, which have lost their worker: QUEUED again or FAILED. Returned as they now are.
absl::StatusOr<std::vector<TaskRecord>> LoseWorker(Database& database, std::vector<TaskRecord> tasks,
                                                   const RetryPolicy& retry, Timestamp now) {
  for (TaskRecord& task : tasks) {
    ++task.lost_workers;
    task.updated = now;
    task.state = TaskState::kQueued;
    if (task.lost_workers >= retry.lost_workers) {
      task.state = TaskState::kFailed;
      task.failure = TaskFailure::kWorkerLost;
      const bool held_too_long = task.hold_until > Timestamp() && now > task.hold_until;
      task.failure_message =
          absl::StrCat("given up: ", task.lost_workers,
                       " workers were lost while they had it, or did not finish it in time; ",
                       "the last one, ", task.worker, held_too_long ? ", held it too long" : ", was lost");
    }
    absl::Status updated =
        database
            .Query(
                "UPDATE tasks SET state = ?2, lost_workers = ?3, failure = ?4, failure_message = ?5, "
                "updated_micros = ?6 WHERE id = ?1",
                task.id, std::string_view(TaskStateName(task.state)), task.lost_workers,
                std::string_view(task.failure == TaskFailure::kWorkerLost ? "WORKER_LOST" : ""),
                task.failure_message, now)
            .Run();
    if (!updated.ok()) return updated;
    FUSION_RETURN_IF_ERROR(EndAttempt(database, {task.id, task.fence},
                                      task.lease_until < now ? "LEASE_EXPIRED" : "WORKER_GONE", now));
  }
  return tasks;
}

}  // namespace

absl::StatusOr<std::vector<TaskRecord>> SqliteStore::ClaimTasks(const std::vector<std::string>& ids,
                                                                const std::string& worker,
                                                                const std::string& instance, Timestamp now,
                                                                std::chrono::microseconds lease) {
  if (ids.empty()) return std::vector<TaskRecord>();
  return Write([&](Database& database) -> absl::StatusOr<std::vector<TaskRecord>> {
    std::vector<TaskRecord> claimed;
    for (const std::string& id : ids) {
      absl::Status updated =
          database
              .Query(
                  "UPDATE tasks SET state = 'RUNNING', fence = fence + 1, attempts = attempts + 1, worker = "
                  "?2, "
                  "instance = ?3, lease_until_micros = iif(hold_micros = 0, ?4, min(?4, ?5 + hold_micros)), "
                  "hold_until_micros = iif(hold_micros = 0, 0, ?5 + hold_micros), updated_micros = ?5 "
                  "WHERE id = ?1 AND state = 'QUEUED'",
                  id, worker, instance, now + lease, now)
              .Run();
      if (!updated.ok()) return updated;
      if (database.changes() == 0) continue;
      FUSION_RETURN_IF_ERROR(BeginAttempt(database, id));
      Statement query =
          database.Query(absl::StrCat("SELECT ", kTaskColumns, kTaskWork, " FROM tasks WHERE id = ?1"), id);
      absl::Status read = query.ForEach([&] { claimed.push_back(ReadTask(query)); });
      if (!read.ok()) return read;
    }
    return claimed;
  });
}

absl::StatusOr<std::vector<TaskRecord>> SqliteStore::FailQueuedTasks(const std::vector<std::string>& ids,
                                                                     const std::string& message,
                                                                     Timestamp now) {
  if (ids.empty()) return std::vector<TaskRecord>();
  return Write([&](Database& database) -> absl::StatusOr<std::vector<TaskRecord>> {
    std::vector<TaskRecord> failed;
    for (const std::string& id : ids) {
      absl::Status updated =
          database
              .Query(
                  "UPDATE tasks SET state = 'FAILED', failure = 'QUEUE_TIMEOUT', failure_message = ?2, "
                  "updated_micros = ?3 WHERE id = ?1 AND state = 'QUEUED'",
                  id, message, now)
              .Run();
      if (!updated.ok()) return updated;
      if (database.changes() == 0) continue;
      Statement query =
          database.Query(absl::StrCat("SELECT ", kTaskColumns, kNoTaskWork, " FROM tasks WHERE id = ?1"), id);
      absl::Status read = query.ForEach([&] { failed.push_back(ReadTask(query)); });
      if (!read.ok()) return read;
    }
    return failed;
  });
}

absl::StatusOr<std::vector<TaskHold>> SqliteStore::RenewLeases(const std::vector<TaskHold>& holds,
                                                               Timestamp now,
                                                               std::chrono::microseconds lease) {
  std::vector<TaskHold> lost;
  if (holds.empty()) return lost;
  return Write([&](Database& database) -> absl::StatusOr<std::vector<TaskHold>> {
    for (const TaskHold& hold : holds) {
      // max: the grace given after a restart may be longer than the lease.
      absl::Status renewed = database
                                 .Query(
                                     "UPDATE tasks SET lease_until_micros = max(lease_until_micros, "
                                     "iif(hold_until_micros = 0, ?3, min(?3, hold_until_micros))) "
                                     "WHERE id = ?1 AND fence = ?2 AND state = 'RUNNING'",
                                     hold.task, hold.fence, now + lease)
                                 .Run();
      if (!renewed.ok()) return renewed;
      if (database.changes() == 0) lost.push_back(hold);
    }
    return lost;
  });
}

absl::StatusOr<std::vector<bool>> SqliteStore::CompleteTasks(const std::vector<TaskCompletion>& completions,
                                                             Timestamp now) {
  if (completions.empty()) return std::vector<bool>();
  return Write([&](Database& database) -> absl::StatusOr<std::vector<bool>> {
    std::vector<bool> completed;
    for (const TaskCompletion& completion : completions) {
      absl::Status updated =
          database
              .Query(
                  "UPDATE tasks SET state = 'DONE', result = ?3, updated_micros = ?4 "
                  "WHERE id = ?1 AND fence = ?2 AND state = 'RUNNING'",
                  completion.hold.task, completion.hold.fence, Bytes{completion.result}, now)
              .Run();
      if (!updated.ok()) return updated;
      completed.push_back(database.changes() > 0);
      if (!completed.back()) continue;
      FUSION_RETURN_IF_ERROR(EndAttempt(database, completion.hold, "DONE", now));
      if (completion.build.has_value()) FUSION_RETURN_IF_ERROR(InsertBuild(database, *completion.build));
    }
    return completed;
  });
}

absl::StatusOr<std::optional<TaskRecord>> SqliteStore::ReleaseTask(const TaskHold& hold,
                                                                   const std::string& message,
                                                                   Timestamp now) {
  return Write([&](Database& database) -> absl::StatusOr<std::optional<TaskRecord>> {
    absl::Status updated =
        database
            .Query(
                "UPDATE tasks SET failures = failures + 1, failure_message = ?3, updated_micros = ?4, "
                "not_before_micros = ?4 + (?5 << min(failures, 20)), "
                "state = iif(failures + 1 >= ?6, 'FAILED', 'QUEUED'), "
                "failure = iif(failures + 1 >= ?6, 'WORKER_FAILED', '') "
                "WHERE id = ?1 AND fence = ?2 AND state = 'RUNNING'",
                hold.task, hold.fence, message, now, options_.retry.backoff.count(), options_.retry.failures)
            .Run();
    if (!updated.ok()) return updated;
    if (database.changes() == 0) return std::nullopt;
    FUSION_RETURN_IF_ERROR(EndAttempt(database, hold, "WORKER_FAILED", now));
    Statement query = database.Query(
        absl::StrCat("SELECT ", kTaskColumns, kNoTaskWork, " FROM tasks WHERE id = ?1"), hold.task);
    FUSION_RETURN_IF_ERROR(query.Step().status());
    return ReadTask(query);
  });
}

absl::StatusOr<std::vector<TaskRecord>> SqliteStore::ExpireLeases(Timestamp now) {
  {
    // Almost always nothing has expired; then no writer is kept waiting.
    Reader reader(*this);
    FUSION_ASSIGN_OR_RETURN(
        bool any,
        reader->Query("SELECT 1 FROM tasks WHERE state = 'RUNNING' AND lease_until_micros < ?1 LIMIT 1", now)
            .Step());
    if (!any) return std::vector<TaskRecord>();
  }
  return Write([&](Database& database) -> absl::StatusOr<std::vector<TaskRecord>> {
    absl::StatusOr<std::vector<TaskRecord>> expired = ReadTasks(database.Query(
        absl::StrCat("SELECT ", kTaskColumns, kNoTaskWork,
                     " FROM tasks WHERE state = 'RUNNING' AND lease_until_micros < ?1 ORDER BY number"),
        now));
    if (!expired.ok()) return expired;
    return LoseWorker(database, *std::move(expired), options_.retry, now);
  });
}

absl::StatusOr<std::vector<TaskRecord>> SqliteStore::LoseTasks(const std::string& worker,
                                                               const std::string& new_instance,
                                                               Timestamp now) {
  return Write([&](Database& database) -> absl::StatusOr<std::vector<TaskRecord>> {
    absl::StatusOr<std::vector<TaskRecord>> lost = ReadTasks(database.Query(
        absl::StrCat(
            "SELECT ", kTaskColumns, kNoTaskWork,
            " FROM tasks WHERE state = 'RUNNING' AND worker = ?1 AND instance <> ?2 ORDER BY number"),
        worker, new_instance));
    if (!lost.ok()) return lost;
    return LoseWorker(database, *std::move(lost), options_.retry, now);
  });
}

absl::StatusOr<int64_t> SqliteStore::AdoptRunning(Timestamp now, std::chrono::microseconds grace) {
  return Write([&](Database& database) -> absl::StatusOr<int64_t> {
    absl::Status adopted = database
                               .Query(
                                   "UPDATE tasks SET lease_until_micros = ?1, hold_until_micros = "
                                   "iif(hold_micros = 0, 0, ?1 + hold_micros) WHERE state = 'RUNNING'",
                                   now + grace)
                               .Run();
    if (!adopted.ok()) return adopted;
    const int64_t running = database.changes();
    // Running tasks are forgiven too: one that is lost later would wait by a clock that may have been set
    // since.
    absl::Status forgiven = database
                                .Query(
                                    "UPDATE tasks SET not_before_micros = 0 WHERE state IN ('QUEUED', "
                                    "'RUNNING') AND not_before_micros <> 0")
                                .Run();
    if (!forgiven.ok()) return forgiven;
    return running;
  });
}

absl::Status SqliteStore::AddWorkerProcess(const std::string& worker, const std::string& instance) {
  constexpr int kKept = 16;
  return Write([&](Database& database) -> absl::Status {
    absl::Status added =
        database
            .Query("INSERT OR IGNORE INTO worker_processes (worker, instance) VALUES (?1, ?2)", worker,
                   instance)
            .Run();
    if (!added.ok()) return added;
    return database
        .Query(
            "DELETE FROM worker_processes WHERE worker = ?1 AND number NOT IN "
            "(SELECT number FROM worker_processes WHERE worker = ?1 ORDER BY number DESC LIMIT ?2)",
            worker, kKept)
        .Run();
  });
}

absl::StatusOr<std::map<std::string, std::vector<std::string>>> SqliteStore::WorkerProcesses() {
  Reader reader(*this);
  std::map<std::string, std::vector<std::string>> processes;
  Statement query = reader->Query("SELECT worker, instance FROM worker_processes ORDER BY number");
  absl::Status read = query.ForEach([&] { processes[query.Text(0)].push_back(query.Text(1)); });
  if (!read.ok()) return read;
  return processes;
}

absl::Status SqliteStore::SetDrained(const std::string& worker, const std::string& instance) {
  return Write([&](Database& database) {
    return database
        .Query("INSERT OR REPLACE INTO drained_workers (worker, instance) VALUES (?1, ?2)", worker, instance)
        .Run();
  });
}

absl::StatusOr<std::map<std::string, std::string>> SqliteStore::DrainedWorkers() {
  Reader reader(*this);
  std::map<std::string, std::string> drained;
  Statement query = reader->Query("SELECT worker, instance FROM drained_workers");
  absl::Status read = query.ForEach([&] { drained[query.Text(0)] = query.Text(1); });
  if (!read.ok()) return read;
  return drained;
}

}  // namespace fusion
