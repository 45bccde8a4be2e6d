#include "server/dispatch/fair_share.h"

#include <algorithm>

namespace fusion {
namespace {

constexpr double kFirstGuessSeconds = 1;
// Weight of the last task in the mean of its kind.
constexpr double kNewest = 0.05;

}  // namespace

double FairShare::Served(const std::string& user) const {
  auto found = served_.find(user);
  return found == served_.end() ? virtual_time_ : found->second;
}

double FairShare::ServedIfHeAsks(const std::string& user) const {
  return std::max(Served(user), virtual_time_);
}

void FairShare::BeginsToWait(const std::string& user) {
  double& served = served_.try_emplace(user, virtual_time_).first->second;
  served = std::max(served, virtual_time_);
}

double FairShare::Charge(const std::string& user, TaskKind kind) {
  const double charged = usual_seconds_.try_emplace(kind, kFirstGuessSeconds).first->second;
  double& served = served_.try_emplace(user, virtual_time_).first->second;
  virtual_time_ = std::max(virtual_time_, served);
  served += charged;
  return charged;
}

void FairShare::Correct(const std::string& user, TaskKind kind, double charged, double seconds) {
  double& usual = usual_seconds_.try_emplace(kind, kFirstGuessSeconds).first->second;
  usual += kNewest * (seconds - usual);
  Refund(user, charged - seconds);
}

void FairShare::Add(const std::string& user, double seconds) {
  served_[user] = ServedIfHeAsks(user) + seconds;
}

double FairShare::UsualSeconds(TaskKind kind) const {
  const auto found = usual_seconds_.find(kind);
  return found == usual_seconds_.end() ? kFirstGuessSeconds : found->second;
}

void FairShare::Refund(const std::string& user, double charged) {
  auto found = served_.find(user);
  if (found != served_.end()) found->second -= charged;
}

void FairShare::Forget(const std::string& user) {
  auto found = served_.find(user);
  if (found != served_.end() && found->second <= virtual_time_) served_.erase(found);
}

}  // namespace fusion
