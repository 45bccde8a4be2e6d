// Of JobRunner: jobs that were begun by earlier processes, one of which may have ended them.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/service/job_runner.h"

namespace fusion {
namespace {

// Processes that may end with a job, none of whose tasks ends meanwhile, before it is given up: somebody may
// kill servers for other reasons, and no acknowledged job is given up lightly. And those after which it goes
// alone.
constexpr int kMostStarts = 100;
constexpr int kSuspectStarts = 20;
// What a job has been seen to run counts so much at most: whoever ends the server later than twice that
// leaves others the time until then.
constexpr std::chrono::minutes kMostSeen{10};

}  // namespace

int JobRunner::StartsOf(const std::string& job) {
  absl::StatusOr<int> starts = store_.Starts(job);
  if (starts.ok()) return *starts;
  spdlog::warn("{}: how often it was begun is not known: {}", job, starts.status().ToString());
  return 0;
}

std::chrono::steady_clock::duration JobRunner::ToOutlive(const std::string& job) {
  std::chrono::steady_clock::duration seen{0};
  if (absl::StatusOr<std::chrono::microseconds> outlived = store_.Outlived(job); outlived.ok())
    seen = std::min<std::chrono::steady_clock::duration>(*outlived, kMostSeen);
  else
    spdlog::warn("{}: for how long it was outlived is not known: {}", job, outlived.status().ToString());
  return std::max<std::chrono::steady_clock::duration>(options_.time_used_period, 2 * seen);
}

bool JobRunner::AwaitTurn(const std::string& job, const Active& active) {
  // Others get something done in each life of the server.
  const auto others_first = began_ + options_.suspect_delay;
  while (true) {
    LeavePlace(job);
    for (std::unique_lock lock(mutex_);
         !stopping_ && (!suspect_.empty() || std::chrono::steady_clock::now() < others_first);) {
      turn_.wait_for(lock, std::chrono::milliseconds(50));
      lock.unlock();  // nobody asks a token under it
      if (active.cancellation.cancelled()) break;
      lock.lock();
    }
    // Who takes the turn has a place, and keeps it (LeavePlace): without one he would wait for those of
    // others, who wait for their turn.
    ReturnToPlace(job, active);
    if (active.cancellation.cancelled()) return false;
    std::lock_guard lock(mutex_);
    if (stopping_) return false;
    if (!suspect_.empty()) continue;
    suspect_ = job;
    return true;
  }
}

absl::Status JobRunner::BeginAgain(const std::string& job, Active& active) {
  int starts = StartsOf(job) + 1;  // that which made it RUNNING is not stored
  if (starts >= kMostStarts)
    return absl::InternalError(
        absl::StrCat("the server ended abruptly each of the ", starts,
                     " times that it began this job, which is given up; the server's log may say why"));
  spdlog::info("{} was begun {} times before", job, starts);
  if (starts >= kSuspectStarts && !AwaitTurn(job, active))
    return absl::CancelledError("the job was not begun");
  std::unique_lock lock(mutex_, std::defer_lock);
  // A task of it may have ended while it waited.
  if (starts >= kSuspectStarts && (starts = StartsOf(job) + 1) < kSuspectStarts) {
    lock.lock();
    if (suspect_ == job) suspect_.clear();
    lock.unlock();
  }
  const auto to_outlive = ToOutlive(job);
  // Without a note of it the job is begun all the same.
  if (absl::Status put = store_.PutStarts({{job, starts}}); !put.ok())
    spdlog::warn("{}: that it was begun was not stored: {}", job, put.ToString());
  lock.lock();
  active.begun_again = std::chrono::steady_clock::now();
  active.to_outlive = to_outlive;
  if (!stopping_) return absl::OkStatus();
  // ForgetStarts may have been here before.
  active.begun_again.reset();
  lock.unlock();
  if (absl::Status put = store_.PutStarts({{job, 0}}); !put.ok())
    spdlog::warn("{}: that the server stops in order was not stored: {}", job, put.ToString());
  return absl::CancelledError("the job was not begun");
}

void JobRunner::NoteOutlived() {
  const auto now = std::chrono::steady_clock::now();
  std::map<std::string, int> forgotten;
  std::map<std::string, std::chrono::microseconds> noted;
  std::string suspect;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [job, active] : active_) {
      if (!active->begun_again) continue;
      const auto lived = now - *active->begun_again;
      const bool outlives = !active->outlived && lived >= active->to_outlive;
      if (outlives) {
        active->outlived = true;
        forgotten[job] = 0;
      }
      if (suspect_ == job && (outlives || lived >= options_.suspect_alone)) suspect_.clear();
      // As it doubles: seldom, and never far behind.
      if (outlives || (lived >= options_.time_used_period && lived >= 2 * active->outlived_noted)) {
        active->outlived_noted = lived;
        noted[job] = std::chrono::duration_cast<std::chrono::microseconds>(lived);
      }
    }
    suspect = suspect_;
  }
  if (!noted.empty())
    if (absl::Status put = store_.PutOutlived(noted); !put.ok())
      spdlog::warn("for how long the server has outlived jobs was not stored: {}", put.ToString());
  PutNoStarts(forgotten);
  // A suspect of which a task has ended is none. Its start is stored after it became one.
  if (suspect.empty() || StartsOf(suspect) > 0) return;
  std::lock_guard lock(mutex_);
  const auto active = active_.find(suspect);
  if (suspect_ == suspect && active != active_.end() && active->second->begun_again) suspect_.clear();
}

void JobRunner::ForgetStarts() {
  std::map<std::string, int> forgotten;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [job, active] : active_)
      if (std::exchange(active->begun_again, std::nullopt)) forgotten[job] = 0;
    suspect_.clear();
  }
  PutNoStarts(forgotten);
}

void JobRunner::PutNoStarts(const std::map<std::string, int>& jobs) {
  if (jobs.empty()) return;
  turn_.notify_all();
  if (absl::Status put = store_.PutStarts(jobs); !put.ok())
    spdlog::warn("that the server has outlived jobs was not stored: {}", put.ToString());
}

}  // namespace fusion
