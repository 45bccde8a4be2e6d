#include "server/service/job_line.h"

#include <utility>

namespace fusion {

void JobLine::Add(const std::string& job, const std::string& user, int priority) {
  const Order order{-priority, ++added_};
  users_[user].waiting[order] = job;
  waiting_[job] = {user, order};
}

bool JobLine::Remove(const std::string& job) {
  auto found = waiting_.find(job);
  if (found == waiting_.end()) return false;
  const auto [user, order] = found->second;
  waiting_.erase(found);
  users_.at(user).waiting.erase(order);
  Forget(user);
  return true;
}

std::optional<std::string> JobLine::Take() {
  User* next = Next();
  if (next == nullptr) return std::nullopt;
  return TakeOf(next);
}

std::optional<std::string> JobLine::TakeBelowShare(int places) {
  User* next = Next();  // has the fewest
  if (next == nullptr) return std::nullopt;
  const auto users = static_cast<int64_t>(users_.size());
  if (next->running > 0 && next->running * users >= places) return std::nullopt;
  return TakeOf(next);
}

JobLine::User* JobLine::Next() {
  User* next = nullptr;
  for (auto& [name, user] : users_) {
    if (user.waiting.empty()) continue;
    if (next == nullptr ||
        std::pair(user.running, user.last_served) < std::pair(next->running, next->last_served))
      next = &user;
  }
  return next;
}

std::string JobLine::TakeOf(User* user) {
  std::string job = std::move(user->waiting.begin()->second);
  user->waiting.erase(user->waiting.begin());
  ++user->running;
  user->last_served = ++served_;
  auto waited = waiting_.find(job);
  running_[job] = waited->second.first;
  waiting_.erase(waited);
  return job;
}

void JobLine::Ended(const std::string& job) {
  auto found = running_.find(job);
  if (found == running_.end()) return;
  const std::string user = std::move(found->second);
  running_.erase(found);
  --users_.at(user).running;
  Forget(user);
}

int JobLine::size(const std::string& user) const {
  auto found = users_.find(user);
  return found == users_.end() ? 0 : static_cast<int>(found->second.waiting.size()) + found->second.running;
}

void JobLine::Forget(const std::string& user) {
  auto found = users_.find(user);
  if (found->second.waiting.empty() && found->second.running == 0) users_.erase(found);
}

}  // namespace fusion
