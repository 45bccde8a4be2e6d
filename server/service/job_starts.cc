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

// Processes that may end with a job, none of whose tasks ends meanwhile, before it is given up, some minutes
// with systemd's second between them: somebody may kill servers for other reasons, and no acknowledged job is
// given up lightly. And those after which it goes alone.
constexpr int kMostStarts = 100;
constexpr int kSuspectStarts = 20;

}  // namespace

int JobRunner::StartsOf(const std::string& job) {
  absl::StatusOr<int> starts = store_.Starts(job);
  if (starts.ok()) return *starts;
  spdlog::warn("{}: how often it was begun is not known: {}", job, starts.status().ToString());
  return 0;
}

absl::Status JobRunner::BeginAgain(const std::string& job, Active& active) {
  const int starts = StartsOf(job) + 1;  // that which made it RUNNING is not stored
  if (starts >= kMostStarts)
    return absl::InternalError(
        absl::StrCat("the server ended abruptly each of the ", starts,
                     " times that it began this job, which is given up; the server's log may say why"));
  spdlog::info("{} was begun {} times before", job, starts);
  // One that ends its server a minute after each start has not been outlived sooner.
  std::chrono::steady_clock::duration to_outlive = options_.time_used_period;
  if (absl::StatusOr<std::chrono::microseconds> outlived = store_.Outlived(job); outlived.ok())
    to_outlive = std::max<std::chrono::steady_clock::duration>(to_outlive, 2 * *outlived);
  else
    spdlog::warn("{}: for how long it was outlived is not known: {}", job, outlived.status().ToString());
  std::unique_lock lock(mutex_);
  if (starts >= kSuspectStarts) {
    // Others get something done in each life of the server. Cancelling wakes nobody here.
    const auto others_first = began_ + options_.suspect_delay;
    while ((!suspect_.empty() || std::chrono::steady_clock::now() < others_first) && !stopping_ &&
           !active.cancellation.cancelled())
      turn_.wait_for(lock, std::chrono::milliseconds(50));
    if (stopping_ || active.cancellation.cancelled()) return absl::CancelledError("the job was not begun");
    suspect_ = job;
  }
  lock.unlock();
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
  {
    std::lock_guard lock(mutex_);
    for (const auto& [job, active] : active_) {
      if (!active->begun_again) continue;
      const auto lived = now - *active->begun_again;
      if (!active->outlived && lived >= active->to_outlive) {
        active->outlived = true;
        forgotten[job] = 0;
        if (suspect_ == job) suspect_.clear();
      }
      // As it doubles: seldom, and never far behind.
      if (lived >= options_.time_used_period && lived >= 2 * active->outlived_noted) {
        active->outlived_noted = lived;
        noted[job] = std::chrono::duration_cast<std::chrono::microseconds>(lived);
      }
    }
  }
  PutNoStarts(forgotten);
  if (noted.empty()) return;
  if (absl::Status put = store_.PutOutlived(noted); !put.ok())
    spdlog::warn("for how long the server has outlived jobs was not stored: {}", put.ToString());
}

void JobRunner::ForgetStarts() {
  std::map<std::string, int> forgotten;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [job, active] : active_)
      if (std::exchange(active->begun_again, std::nullopt) && !active->outlived) forgotten[job] = 0;
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
