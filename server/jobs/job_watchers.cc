#include "server/jobs/job_watchers.h"

#include <utility>
#include <vector>

namespace fusion {

JobWatchers::Subscription::Subscription(JobWatchers* watchers, std::string job, int64_t id)
    : watchers_(watchers), job_(std::move(job)), id_(id) {}

JobWatchers::Subscription::~Subscription() {
  std::lock_guard lock(watchers_->mutex_);
  auto job = watchers_->watchers_.find(job_);
  if (job == watchers_->watchers_.end()) return;
  job->second.erase(id_);
  if (job->second.empty()) watchers_->watchers_.erase(job);
}

std::unique_ptr<JobWatchers::Subscription> JobWatchers::Subscribe(const std::string& job,
                                                                  std::function<void()> wake) {
  std::lock_guard lock(mutex_);
  const int64_t id = next_id_++;
  watchers_[job].emplace(id, std::move(wake));
  return std::unique_ptr<Subscription>(new Subscription(this, job, id));
}

void JobWatchers::Notify(const std::string& job) {
  std::vector<std::function<void()>> wakes;
  {
    std::lock_guard lock(mutex_);
    auto found = watchers_.find(job);
    if (found == watchers_.end()) return;
    for (const auto& [id, wake] : found->second) wakes.push_back(wake);
  }
  for (const auto& wake : wakes) wake();
}

void JobWatchers::Close() {
  std::vector<std::function<void()>> wakes;
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    for (const auto& [job, watchers] : watchers_)
      for (const auto& [id, wake] : watchers) wakes.push_back(wake);
  }
  for (const auto& wake : wakes) wake();
}

bool JobWatchers::closed() const {
  std::lock_guard lock(mutex_);
  return closed_;
}

}  // namespace fusion
