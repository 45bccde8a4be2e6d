#include "server/jobs/job_line.h"

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
  const auto [name, order] = found->second;
  waiting_.erase(found);
  auto user = users_.find(name);
  user->second.waiting.erase(order);
  if (user->second.waiting.empty() && user->second.begun == 0) users_.erase(user);
  return true;
}

bool JobLine::IsBelowShare(const User& user) const {
  return user.running == 0 || user.running * static_cast<int64_t>(users_.size()) < places_;
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

std::optional<std::string> JobLine::Take() {
  const bool full = running_ - static_cast<int>(on_kept_.size()) + returning_ >= places_;
  if (full && !HasKept()) return std::nullopt;
  User* next = Next();  // has the fewest
  if (next == nullptr || (full && !IsBelowShare(*next))) return std::nullopt;
  std::string job = std::move(next->waiting.begin()->second);
  next->waiting.erase(next->waiting.begin());
  ++next->begun;
  next->last_served = ++served_;
  auto waited = waiting_.find(job);
  if (full) on_kept_.insert(job);
  Run(begun_[job] = {std::move(waited->second.first)});
  waiting_.erase(waited);
  return job;
}

void JobLine::Run(Begun& begun) {
  begun.state = State::kRunning;
  ++running_;
  ++users_.at(begun.user).running;
}

void JobLine::LeavePlace(const std::string& job, Begun& begun) {
  --running_;
  --users_.at(begun.user).running;
  on_kept_.erase(job);
  Settle();
}

void JobLine::Settle() {
  while (!on_kept_.empty() && running_ - static_cast<int>(on_kept_.size()) + returning_ < places_)
    on_kept_.erase(on_kept_.begin());
}

void JobLine::Rest(const std::string& job) {
  auto found = begun_.find(job);
  if (found == begun_.end() || found->second.state != State::kRunning) return;
  found->second.state = State::kResting;
  LeavePlace(job, found->second);
}

void JobLine::Return(const std::string& job) {
  auto found = begun_.find(job);
  if (found == begun_.end() || found->second.state != State::kResting) return;
  found->second.state = State::kReturning;
  ++returning_;
}

bool JobLine::TakeBack(const std::string& job) {
  auto found = begun_.find(job);
  if (found == begun_.end() || found->second.state != State::kReturning) return true;
  const bool full = IsFull();
  if (full && !(HasKept() && IsBelowShare(users_.at(found->second.user)))) return false;
  if (full) on_kept_.insert(job);
  TakeBackAnyway(job);
  return true;
}

void JobLine::TakeBackAnyway(const std::string& job) {
  auto found = begun_.find(job);
  if (found == begun_.end() || found->second.state != State::kReturning) return;
  --returning_;
  Run(found->second);
  Settle();
}

void JobLine::Ended(const std::string& job) {
  auto found = begun_.find(job);
  if (found == begun_.end()) return;
  if (found->second.state == State::kRunning) LeavePlace(job, found->second);
  if (found->second.state == State::kReturning) {
    --returning_;
    Settle();
  }
  auto user = users_.find(found->second.user);
  begun_.erase(found);
  if (--user->second.begun == 0 && user->second.waiting.empty()) users_.erase(user);
}

int JobLine::size(const std::string& user) const {
  auto found = users_.find(user);
  return found == users_.end() ? 0 : static_cast<int>(found->second.waiting.size()) + found->second.begun;
}

}  // namespace fusion
