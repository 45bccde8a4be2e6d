#include "tests/fault/storage/workload.h"

#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

Timestamp At(int64_t seconds) { return Timestamp(std::chrono::seconds(seconds)); }

}  // namespace

absl::Status RunWorkload(Store& store, int rounds, Acknowledged* acknowledged,
                         const std::function<void()>& done) {
  const auto note = [&] {
    if (done) done();
  };
  for (int round = 0; round < rounds; ++round) {
    JobRecord job;
    job.request_id = absl::StrCat("request", acknowledged->jobs.size(), ".", round);
    absl::StatusOr<CreatedJob> created = store.CreateJob(job, At(round));
    if (!created.ok()) return created.status();
    const std::string& id = created->job.id;
    acknowledged->jobs.push_back(id);
    note();
    std::vector<TaskSpec> specs;
    for (int i = 0; i < 3; ++i)
      specs.push_back({.key = absl::StrCat(id, " ", i),
                       .requirements = {"CUDA", "sm_90", ""},
                       .payload = std::string(2000, 'p')});
    absl::StatusOr<std::vector<EnsuredTask>> tasks = store.EnsureTasks(id, specs, At(round));
    if (!tasks.ok()) return tasks.status();
    note();
    std::vector<std::string> ids;
    for (const EnsuredTask& task : *tasks) ids.push_back(task.task.id);
    absl::StatusOr<std::vector<TaskRecord>> claimed =
        store.ClaimTasks(ids, "w", "1", At(round), std::chrono::seconds(15));
    if (!claimed.ok()) return claimed.status();
    note();
    for (const TaskRecord& task : *claimed) {
      const std::string content = absl::StrCat("binary of ", task.id, std::string(5000, 'b'));
      absl::StatusOr<std::string> digest = store.PutBlob(content, "", At(round));
      if (!digest.ok()) return digest.status();
      acknowledged->blobs[*digest] = content;
      note();
      const std::string result = absl::StrCat("result of ", task.id);
      const BuildRecord build{.key = task.key, .outcome = "OK", .binary_digest = *digest};
      absl::StatusOr<bool> stored = store.CompleteTask({{task.id, task.fence}, result, build}, At(round));
      if (!stored.ok()) return stored.status();
      acknowledged->results[task.id] = result;
      note();
    }
    absl::StatusOr<int64_t> event = store.AppendEvent(id, "event", At(round));
    if (!event.ok()) return event.status();
    acknowledged->events[id] = 1;
    note();
    // As a server does from time to time.
    if (absl::Status moved = store.Checkpoint(); !moved.ok()) return moved;
  }
  return absl::OkStatus();
}

std::string Missing(Store& store, const Acknowledged& acknowledged) {
  if (absl::Status sound = store.CheckIntegrity(); !sound.ok()) return sound.ToString();
  for (const std::string& job : acknowledged.jobs)
    if (absl::Status status = store.GetJob(job).status(); !status.ok()) return status.ToString();
  for (const auto& [id, result] : acknowledged.results) {
    absl::StatusOr<TaskRecord> task = store.GetTask(id);
    if (!task.ok()) return task.status().ToString();
    if (task->state != TaskState::kDone || task->result != result)
      return absl::StrCat(id, " has lost its result");
  }
  for (const auto& [digest, content] : acknowledged.blobs) {
    absl::StatusOr<std::string> blob = store.GetBlob(digest);
    if (!blob.ok()) return blob.status().ToString();
    if (*blob != content) return absl::StrCat(digest, " has changed");
  }
  for (const auto& [job, count] : acknowledged.events) {
    absl::StatusOr<std::vector<EventRecord>> events = store.EventsAfter(job, 0, 10);
    if (!events.ok()) return events.status().ToString();
    if (static_cast<int>(events->size()) < count) return absl::StrCat(job, " has lost an event");
  }
  return "";
}

}  // namespace fusion
