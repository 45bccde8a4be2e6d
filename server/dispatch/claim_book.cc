#include "server/dispatch/claim_book.h"

#include <algorithm>

namespace fusion {

ClaimedTask ClaimedTaskOf(const TaskRecord& task) {
  return ClaimedTask{.number = task.number,
                     .id = task.id,
                     .fence = task.fence,
                     .key = task.key,
                     .kind = task.kind,
                     .worker = task.worker,
                     .instance = task.instance,
                     .claimed = task.updated};
}

void ClaimBook::Claimed(ClaimedTask task) {
  const Hold hold{task.id, task.fence};
  std::lock_guard lock(mutex_);
  if (ended_first_.erase(hold) > 0) return;
  const std::string worker = task.worker;
  held_[worker][hold] = std::move(task);
}

void ClaimBook::Ended(const std::string& worker, const std::string& id, int64_t fence) {
  const Hold hold{id, fence};
  std::lock_guard lock(mutex_);
  auto found = held_.find(worker);
  if (found == held_.end() || found->second.erase(hold) == 0) {
    ended_first_.insert(hold);
    return;
  }
  if (found->second.empty()) held_.erase(found);
}

std::vector<ClaimedTask> ClaimBook::HeldBy(const std::string& worker, const std::string& instance) const {
  std::vector<ClaimedTask> held;
  {
    std::lock_guard lock(mutex_);
    auto found = held_.find(worker);
    if (found == held_.end()) return held;
    for (const auto& [hold, task] : found->second)
      if (task.instance == instance) held.push_back(task);
  }
  std::sort(held.begin(), held.end(),
            [](const ClaimedTask& a, const ClaimedTask& b) { return a.number < b.number; });
  return held;
}

std::optional<ClaimedTask> ClaimBook::Find(const std::string& worker, const std::string& id,
                                           int64_t fence) const {
  std::lock_guard lock(mutex_);
  auto found = held_.find(worker);
  if (found == held_.end()) return std::nullopt;
  auto task = found->second.find({id, fence});
  return task == found->second.end() ? std::nullopt : std::optional(task->second);
}

}  // namespace fusion
