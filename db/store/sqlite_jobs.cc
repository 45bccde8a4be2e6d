// Jobs and their events.
#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/random_id.h"
#include "base/status_macros.h"
#include "db/store/sqlite_store.h"

namespace fusion {
namespace {

// The blobs come last: lists that do not want them stop before.
constexpr char kJobColumns[] =
    "id, request_id, state, target, graph_name, graph_hash, created_micros, updated_micros, graph_summary, "
    "number, user, priority, queue_limit_micros, best, request, error, result";
constexpr char kListColumns[] =
    "id, request_id, state, target, graph_name, graph_hash, created_micros, updated_micros, graph_summary, "
    "number, user, priority, queue_limit_micros, best";

JobState ParseJobState(const std::string& name) {
  for (JobState state : {JobState::kQueued, JobState::kRunning, JobState::kSucceeded, JobState::kFailed}) {
    if (name == JobStateName(state)) return state;
  }
  return JobState::kCancelled;
}

// A request is known by this key: users choose the ids of their requests without knowing of each other.
std::string RequestKey(const std::string& user, const std::string& request_id) {
  return user.empty() || request_id.empty() ? request_id : absl::StrCat(user, "/", request_id);
}

JobRecord ReadListedJob(const Statement& row) {
  JobRecord job;
  job.id = row.Text(0);
  job.user = row.Text(10);
  job.priority = static_cast<int>(row.Int(11));
  job.queue_limit = std::chrono::microseconds(row.Int(12));
  job.request_id = row.Text(1);
  if (!job.user.empty() && !job.request_id.empty()) job.request_id.erase(0, job.user.size() + 1);
  job.state = ParseJobState(row.Text(2));
  job.target = row.Text(3);
  job.graph_name = row.Text(4);
  job.graph_hash = row.Text(5);
  job.created = row.Time(6);
  job.updated = row.Time(7);
  job.graph_summary = row.Text(8);
  job.best = row.Text(13);
  return job;
}

JobRecord ReadJob(const Statement& row) {
  JobRecord job = ReadListedJob(row);
  job.request = row.Text(14);
  job.error = row.Text(15);
  job.result = row.Text(16);
  return job;
}

absl::Status NoSuchJob(const std::string& id) {
  return absl::NotFoundError(absl::StrCat("there is no job ", id));
}

// The job whose `column` has the value, or NOT_FOUND.
absl::StatusOr<JobRecord> FindJob(Database& database, const char* column, const std::string& value) {
  Statement query =
      database.Query(absl::StrCat("SELECT ", kJobColumns, " FROM jobs WHERE ", column, " = ?1"), value);
  FUSION_ASSIGN_OR_RETURN(bool row, query.Step());
  if (!row) return NoSuchJob(value);
  return ReadJob(query);
}

absl::StatusOr<int64_t> InsertEvent(Database& database, const std::string& job, const std::string& event,
                                    Timestamp now) {
  int64_t sequence = 1;
  {
    Statement last = database.Query("SELECT max(sequence) FROM job_events WHERE job = ?1", job);
    FUSION_ASSIGN_OR_RETURN(bool row, last.Step());
    if (row) sequence = last.Int(0) + 1;  // NULL reads as 0
  }
  absl::Status inserted =
      database
          .Query("INSERT INTO job_events (job, sequence, time_micros, event) VALUES (?1, ?2, ?3, ?4)", job,
                 sequence, now, Bytes{event})
          .Run();
  if (!inserted.ok()) return inserted;
  return sequence;
}

bool MayFollow(JobState from, JobState to) {
  if (from == to) return true;
  switch (to) {
    case JobState::kRunning:
      return from == JobState::kQueued;
    case JobState::kSucceeded:
      return from == JobState::kRunning;
    case JobState::kFailed:
    case JobState::kCancelled:
      return true;
    case JobState::kQueued:
      return false;
  }
  return false;
}

// `user`: null for the jobs of all.
absl::StatusOr<JobPage> PageOfJobs(Database& database, const std::string* user, int page_size,
                                   const std::string& page_token) {
  if (page_size < 0) return absl::InvalidArgumentError("page_size is negative");
  const int count = page_size == 0 ? 50 : std::min(page_size, 1000);
  int64_t before = INT64_MAX;
  if (!page_token.empty() && (!absl::SimpleAtoi(page_token, &before) || before < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", page_token, "' is not a page token of an earlier answer"));
  }
  JobPage page;
  int64_t last_number = 0;
  bool more = false;
  const std::string sql =
      absl::StrCat("SELECT ", kListColumns, " FROM jobs WHERE number < ?1",
                   user == nullptr ? "" : " AND user = ?3", " ORDER BY number DESC LIMIT ?2");
  Statement query = user == nullptr ? database.Query(sql, before, count + 1)
                                    : database.Query(sql, before, count + 1, *user);
  absl::Status read = query.ForEach([&] {
    if (static_cast<int>(page.jobs.size()) == count) {
      more = true;
      return;
    }
    page.jobs.push_back(ReadListedJob(query));
    last_number = query.Int(9);
  });
  if (!read.ok()) return read;
  if (more) page.next_page_token = absl::StrCat(last_number);
  return page;
}

}  // namespace

absl::StatusOr<CreatedJob> SqliteStore::CreateJob(const JobRecord& job, Timestamp now) {
  return Write(
      [&](Database& database) -> absl::StatusOr<CreatedJob> {
        CreatedJob created;
        const std::string request_key = RequestKey(job.user, job.request_id);
        if (!request_key.empty()) {
          absl::StatusOr<JobRecord> known = FindJob(database, "request_id", request_key);
          if (known.ok()) return CreatedJob{*std::move(known), false};
          if (!absl::IsNotFound(known.status())) return known.status();
        }
        created.created = true;
        created.job = job;
        created.job.state = JobState::kQueued;
        created.job.created = created.job.updated = now;
        if (job.id.empty()) {
          created.job.id = "jobs/" + RandomHex(2);
        } else {
          absl::StatusOr<JobRecord> taken = FindJob(database, "id", job.id);
          if (taken.ok())
            return absl::AlreadyExistsError(absl::StrCat("there is a job ", job.id, " already"));
          if (!absl::IsNotFound(taken.status())) return taken.status();
        }
        const JobRecord& record = created.job;
        absl::Status inserted =
            database
                .Query(
                    "INSERT INTO jobs (id, request_id, state, target, graph_name, graph_hash, "
                    "created_micros, "
                    "updated_micros, graph_summary, request, error, result, user, "
                    "priority, queue_limit_micros) "
                    "VALUES (?1, nullif(?2, ''), 'QUEUED', ?3, ?4, ?5, ?6, ?6, ?7, ?8, ?9, ?10, ?11, ?12, "
                    "?13)",
                    record.id, request_key, record.target, record.graph_name, record.graph_hash, now,
                    Bytes{record.graph_summary}, Bytes{record.request}, Bytes{record.error},
                    Bytes{record.result}, record.user, record.priority, record.queue_limit.count())
                .Run();
        if (!inserted.ok()) return inserted;
        FUSION_RETURN_IF_ERROR(SetTraceParent(database, record));
        return created;
      },
      Urgency::kUrgent);
}

absl::StatusOr<JobRecord> SqliteStore::GetJob(const std::string& id) {
  Reader reader(*this);
  return FindJob(*reader, "id", id);
}

absl::StatusOr<JobRecord> SqliteStore::FindRequest(const std::string& user, const std::string& request_id) {
  Reader reader(*this);
  return FindJob(*reader, "request_id", RequestKey(user, request_id));
}

absl::StatusOr<JobPage> SqliteStore::ListJobs(int page_size, const std::string& page_token) {
  Reader reader(*this);
  return PageOfJobs(*reader, nullptr, page_size, page_token);
}

absl::StatusOr<JobPage> SqliteStore::ListJobsOf(const std::string& user, int page_size,
                                                const std::string& page_token) {
  Reader reader(*this);
  return PageOfJobs(*reader, &user, page_size, page_token);
}

absl::StatusOr<JobRecord> SqliteStore::UpdateJob(const std::string& id, const JobUpdate& update,
                                                 Timestamp now) {
  return Write([&](Database& database) -> absl::StatusOr<JobRecord> {
    FUSION_ASSIGN_OR_RETURN(JobRecord found, FindJob(database, "id", id));
    JobRecord job = std::move(found);
    if (IsTerminal(job.state)) {
      return absl::FailedPreconditionError(
          absl::StrCat("job ", id, " has ended as ", JobStateName(job.state), " and changes no more"));
    }
    if (update.state.has_value()) {
      if (!MayFollow(job.state, *update.state)) {
        return absl::FailedPreconditionError(absl::StrCat(
            "job ", id, " cannot go from ", JobStateName(job.state), " to ", JobStateName(*update.state)));
      }
      job.state = *update.state;
    }
    if (update.graph_name.has_value()) job.graph_name = *update.graph_name;
    if (update.graph_hash.has_value()) job.graph_hash = *update.graph_hash;
    if (update.graph_summary.has_value()) job.graph_summary = *update.graph_summary;
    if (update.error.has_value()) job.error = *update.error;
    if (update.result.has_value()) job.result = *update.result;
    if (update.best.has_value()) job.best = *update.best;
    job.updated = now;
    absl::Status updated =
        database
            .Query(
                "UPDATE jobs SET state = ?2, graph_name = ?3, graph_hash = ?4, graph_summary = ?5, error = "
                "?6, "
                "result = ?7, updated_micros = ?8, best = ?9 WHERE id = ?1",
                id, std::string_view(JobStateName(job.state)), job.graph_name, job.graph_hash,
                Bytes{job.graph_summary}, Bytes{job.error}, Bytes{job.result}, now, Bytes{job.best})
            .Run();
    if (!updated.ok()) return updated;
    if (IsTerminal(job.state))  // it counts on no builds any more
      FUSION_RETURN_IF_ERROR(database.Query("DELETE FROM job_builds WHERE job = ?1", id).Run());
    if (update.event.has_value())
      FUSION_RETURN_IF_ERROR(InsertEvent(database, id, *update.event, now).status());
    return job;
  });
}

absl::StatusOr<std::vector<JobRecord>> SqliteStore::UnfinishedJobs() {
  Reader reader(*this);
  std::vector<JobRecord> jobs;
  Statement query = reader->Query(absl::StrCat(
      "SELECT ", kJobColumns, " FROM jobs WHERE state IN ('QUEUED', 'RUNNING') ORDER BY number"));
  absl::Status read = query.ForEach([&] { jobs.push_back(ReadJob(query)); });
  if (!read.ok()) return read;
  return jobs;
}

absl::Status SqliteStore::PutTimesUsed(const std::map<std::string, std::chrono::microseconds>& used) {
  return Write([&](Database& database) {
    for (const auto& [job, time] : used) {
      absl::Status put =
          database
              .Query(
                  "INSERT INTO job_times (job, used_micros) SELECT id, ?2 FROM jobs WHERE id = ?1 "
                  "AND state IN ('QUEUED', 'RUNNING') "
                  "ON CONFLICT (job) DO UPDATE SET used_micros = excluded.used_micros",
                  job, static_cast<int64_t>(time.count()))
              .Run();
      if (!put.ok()) return put;
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<std::chrono::microseconds> SqliteStore::TimeUsed(const std::string& job) {
  Reader reader(*this);
  Statement query = reader->Query("SELECT used_micros FROM job_times WHERE job = ?1", job);
  FUSION_ASSIGN_OR_RETURN(bool row, query.Step());
  return std::chrono::microseconds(row ? query.Int(0) : 0);
}

absl::StatusOr<int64_t> SqliteStore::AppendEvent(const std::string& job, const std::string& event,
                                                 Timestamp now) {
  return Write([&](Database& database) -> absl::StatusOr<int64_t> {
    {
      Statement query = database.Query("SELECT 1 FROM jobs WHERE id = ?1", job);
      FUSION_ASSIGN_OR_RETURN(bool exists, query.Step());
      if (!exists) return NoSuchJob(job);
    }
    return InsertEvent(database, job, event, now);
  });
}

absl::StatusOr<std::vector<EventRecord>> SqliteStore::EventsAfter(const std::string& job, int64_t sequence,
                                                                  int limit) {
  Reader reader(*this);
  {
    Statement query = reader->Query("SELECT 1 FROM jobs WHERE id = ?1", job);
    FUSION_ASSIGN_OR_RETURN(bool exists, query.Step());
    if (!exists) return NoSuchJob(job);
  }
  std::vector<EventRecord> events;
  Statement query = reader->Query(
      "SELECT sequence, time_micros, event FROM job_events WHERE job = ?1 AND sequence > ?2 ORDER BY "
      "sequence LIMIT ?3",
      job, sequence, std::max(limit, 0));
  absl::Status read = query.ForEach([&] {
    events.push_back(EventRecord{query.Int(0), query.Time(1), query.Text(2)});
  });
  if (!read.ok()) return read;
  return events;
}

}  // namespace fusion
