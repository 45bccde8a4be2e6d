// Tasks in the hands of workers: claims, leases, results, losses.
//
//   QUEUED --claim--> RUNNING --result--> DONE
//      ^                 |
//      +--- failure, ----+----> FAILED, when that has happened too often
//           lost worker         (QUEUED and RUNNING can also become CANCELLED: sqlite_tasks.cc)
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "db/store/sqlite_store.h"

namespace fusion {
namespace {

struct Claimable {
  int64_t number;
  int64_t priority;
};

// Appends QUEUED tasks that the capability allows, best first, at most `count`.
absl::Status FindClaimable(Database& database, const std::string& worker, const Capability& capability,
                           TaskKind kind, int count, Timestamp now, std::vector<Claimable>& found) {
  Statement query = database.Query(
      "SELECT number, priority FROM tasks WHERE state = 'QUEUED' AND kind = ?1 AND target = ?2 "
      "AND (?3 = '' OR arch = '' OR arch = ?3) AND (device_uuid = '' OR device_uuid = ?4) "
      "AND (not_before_micros <= ?5 OR worker <> ?6) "
      "AND (kind <> 'TIME' OR device_uuid = '' OR NOT EXISTS (SELECT 1 FROM tasks AS other WHERE other.state "
      "= 'RUNNING' "
      "     AND other.kind = 'TIME' AND other.device_uuid = tasks.device_uuid AND other.worker <> ?6)) "
      "ORDER BY priority DESC, number LIMIT ?7",
      std::string_view(TaskKindName(kind)), capability.target, capability.arch, capability.device_uuid, now,
      worker, count);
  return query.ForEach([&] { found.push_back({query.Int(0), query.Int(1)}); });
}

// The tasks of `query`, which have lost their worker: QUEUED again or FAILED. Returned as they now are.
absl::StatusOr<std::vector<TaskRecord>> LoseWorker(Database& database, std::vector<TaskRecord> tasks,
                                                   const RetryPolicy& retry, Timestamp now) {
  for (TaskRecord& task : tasks) {
    ++task.lost_workers;
    task.updated = now;
    task.state = TaskState::kQueued;
    if (task.lost_workers >= retry.lost_workers) {
      task.state = TaskState::kFailed;
      task.failure = TaskFailure::kWorkerLost;
      task.failure_message = absl::StrCat("given up: ", task.lost_workers,
                                          " workers were lost while they had it, the last one ", task.worker);
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
  }
  return tasks;
}

}  // namespace

absl::StatusOr<std::vector<TaskRecord>> SqliteStore::ClaimTasks(const std::string& worker,
                                                                const std::string& instance,
                                                                const std::vector<Capability>& capabilities,
                                                                TaskKind kind, int count, Timestamp now,
                                                                std::chrono::microseconds lease) {
  if (count <= 0) return std::vector<TaskRecord>();
  return Write([&](Database& database) -> absl::StatusOr<std::vector<TaskRecord>> {
    std::vector<Claimable> claimable;
    for (const Capability& capability : capabilities) {
      absl::Status read = FindClaimable(database, worker, capability, kind, count, now, claimable);
      if (!read.ok()) return read;
    }
    std::sort(claimable.begin(), claimable.end(), [](const Claimable& a, const Claimable& b) {
      return a.priority != b.priority ? a.priority > b.priority : a.number < b.number;
    });
    const auto same = [](const Claimable& a, const Claimable& b) { return a.number == b.number; };
    claimable.erase(std::unique(claimable.begin(), claimable.end(), same), claimable.end());
    if (static_cast<int>(claimable.size()) > count) claimable.resize(count);

    std::vector<TaskRecord> claimed;
    for (const Claimable& task : claimable) {
      absl::Status updated =
          database
              .Query(
                  "UPDATE tasks SET state = 'RUNNING', fence = fence + 1, attempts = attempts + 1, worker = "
                  "?2, "
                  "instance = ?3, lease_until_micros = ?4, updated_micros = ?5 WHERE number = ?1",
                  task.number, worker, instance, now + lease, now)
              .Run();
      if (!updated.ok()) return updated;
      Statement query =
          database.Query(absl::StrCat("SELECT ", kTaskColumns, " FROM tasks WHERE number = ?1"), task.number);
      absl::Status read = query.ForEach([&] { claimed.push_back(ReadTask(query)); });
      if (!read.ok()) return read;
    }
    return claimed;
  });
}

absl::StatusOr<std::vector<TaskRecord>> SqliteStore::HeldTasks(const std::string& worker,
                                                               const std::string& instance) {
  Reader reader(*this);
  std::vector<TaskRecord> held;
  Statement query = reader->Query(
      absl::StrCat("SELECT ", kTaskColumns,
                   " FROM tasks WHERE state = 'RUNNING' AND worker = ?1 AND instance = ?2 ORDER BY number"),
      worker, instance);
  absl::Status read = query.ForEach([&] { held.push_back(ReadTask(query)); });
  if (!read.ok()) return read;
  return held;
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
                                     "UPDATE tasks SET lease_until_micros = max(lease_until_micros, ?3) "
                                     "WHERE id = ?1 AND fence = ?2 AND state = 'RUNNING'",
                                     hold.task, hold.fence, now + lease)
                                 .Run();
      if (!renewed.ok()) return renewed;
      if (database.changes() == 0) lost.push_back(hold);
    }
    return lost;
  });
}

absl::StatusOr<bool> SqliteStore::CompleteTask(const TaskHold& hold, const std::string& result,
                                               const BuildRecord* build, Timestamp now) {
  return Write([&](Database& database) -> absl::StatusOr<bool> {
    absl::Status updated = database
                               .Query(
                                   "UPDATE tasks SET state = 'DONE', result = ?3, updated_micros = ?4 "
                                   "WHERE id = ?1 AND fence = ?2 AND state = 'RUNNING'",
                                   hold.task, hold.fence, Bytes{result}, now)
                               .Run();
    if (!updated.ok()) return updated;
    if (database.changes() == 0) return false;
    if (build != nullptr) {
      absl::Status cached = InsertBuild(database, *build);
      if (!cached.ok()) return cached;
    }
    return true;
  });
}

absl::StatusOr<bool> SqliteStore::ReleaseTask(const TaskHold& hold, const std::string& message,
                                              Timestamp now) {
  return Write([&](Database& database) -> absl::StatusOr<bool> {
    absl::Status updated =
        database
            .Query(
                "UPDATE tasks SET failures = failures + 1, failure_message = ?3, updated_micros = ?4, "
                "not_before_micros = ?5, state = iif(failures + 1 >= ?6, 'FAILED', 'QUEUED'), "
                "failure = iif(failures + 1 >= ?6, 'WORKER_FAILED', '') "
                "WHERE id = ?1 AND fence = ?2 AND state = 'RUNNING'",
                hold.task, hold.fence, message, now, now + options_.retry.backoff, options_.retry.failures)
            .Run();
    if (!updated.ok()) return updated;
    return database.changes() > 0;
  });
}

absl::StatusOr<std::vector<TaskRecord>> SqliteStore::ExpireLeases(Timestamp now) {
  {
    // Almost always nothing has expired; then no writer is kept waiting.
    Reader reader(*this);
    absl::StatusOr<bool> any =
        reader->Query("SELECT 1 FROM tasks WHERE state = 'RUNNING' AND lease_until_micros < ?1 LIMIT 1", now)
            .Step();
    if (!any.ok()) return any.status();
    if (!*any) return std::vector<TaskRecord>();
  }
  return Write([&](Database& database) -> absl::StatusOr<std::vector<TaskRecord>> {
    std::vector<TaskRecord> expired;
    {
      Statement query = database.Query(
          absl::StrCat("SELECT ", kTaskColumns,
                       " FROM tasks WHERE state = 'RUNNING' AND lease_until_micros < ?1 ORDER BY number"),
          now);
      absl::Status read = query.ForEach([&] { expired.push_back(ReadTask(query)); });
      if (!read.ok()) return read;
    }
    return LoseWorker(database, std::move(expired), options_.retry, now);
  });
}

absl::StatusOr<std::vector<TaskRecord>> SqliteStore::LoseTasks(const std::string& worker,
                                                               const std::string& new_instance,
                                                               Timestamp now) {
  return Write([&](Database& database) -> absl::StatusOr<std::vector<TaskRecord>> {
    std::vector<TaskRecord> lost;
    {
      Statement query = database.Query(
          absl::StrCat(
              "SELECT ", kTaskColumns,
              " FROM tasks WHERE state = 'RUNNING' AND worker = ?1 AND instance <> ?2 ORDER BY number"),
          worker, new_instance);
      absl::Status read = query.ForEach([&] { lost.push_back(ReadTask(query)); });
      if (!read.ok()) return read;
    }
    return LoseWorker(database, std::move(lost), options_.retry, now);
  });
}

absl::StatusOr<int64_t> SqliteStore::AdoptRunning(Timestamp now, std::chrono::microseconds grace) {
  return Write([&](Database& database) -> absl::StatusOr<int64_t> {
    absl::Status adopted = database
                               .Query(
                                   "UPDATE tasks SET lease_until_micros = max(lease_until_micros, ?1) "
                                   "WHERE state = 'RUNNING'",
                                   now + grace)
                               .Run();
    if (!adopted.ok()) return adopted;
    return database.changes();
  });
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
