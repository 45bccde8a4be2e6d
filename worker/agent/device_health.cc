#include "worker/agent/device_health.h"

namespace fusion {

void DeviceHealth::TakeOut(const std::string& device_uuid, const std::string& reason) {
  {
    std::lock_guard lock(mutex_);
    problems_.try_emplace(device_uuid, Problem{"", std::chrono::steady_clock::now()}).first->second.reason =
        reason;
  }
  if (changed_) changed_();
}

void DeviceHealth::BringBack(const std::string& device_uuid) {
  {
    std::lock_guard lock(mutex_);
    if (problems_.erase(device_uuid) == 0) return;
  }
  if (changed_) changed_();
}

bool DeviceHealth::IsOut(const std::string& device_uuid) const {
  std::lock_guard lock(mutex_);
  return problems_.contains(device_uuid);
}

std::vector<v1::DeviceProblem> DeviceHealth::Problems() const {
  std::lock_guard lock(mutex_);
  std::vector<v1::DeviceProblem> problems;
  for (const auto& [uuid, problem] : problems_) {
    v1::DeviceProblem& message = problems.emplace_back();
    message.set_device_uuid(uuid);
    message.set_reason(problem.reason);
    message.set_seconds(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - problem.since).count());
  }
  return problems;
}

}  // namespace fusion
