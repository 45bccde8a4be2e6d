#include "worker/agent/device_health.h"

namespace fusion {

void DeviceHealth::OnChange(std::function<void()> changed) {
  std::lock_guard lock(mutex_);
  changed_ = std::move(changed);
}

void DeviceHealth::TakeOut(const std::string& device_uuid, const std::string& reason) {
  std::function<void()> changed;
  {
    std::lock_guard lock(mutex_);
    changed = changed_;
    problems_.try_emplace(device_uuid, Problem{"", std::chrono::steady_clock::now()}).first->second.reason =
        reason;
  }
  if (changed) changed();
}

void DeviceHealth::BringBack(const std::string& device_uuid) {
  std::function<void()> changed;
  {
    std::lock_guard lock(mutex_);
    if (problems_.erase(device_uuid) == 0) return;
    changed = changed_;
  }
  if (changed) changed();
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
