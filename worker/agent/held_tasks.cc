#include "worker/agent/held_tasks.h"

#include <utility>

namespace fusion {

HeldTasks::Started HeldTasks::Start(const v1::Assignment& assignment) {
  std::lock_guard lock(mutex_);
  const auto found = held_.find(assignment.task());
  if (found != held_.end()) {
    if (found->second.report.fence() >= assignment.fence()) return {};
    found->second.stop.request_stop();
    held_.erase(found);
  }
  Held& held = held_[assignment.task()];
  held.kind = assignment.has_time() ? v1::TIME : v1::BUILD;
  held.device_uuid = assignment.time().device_uuid();
  held.report.set_task(assignment.task());
  held.report.set_fence(assignment.fence());
  held.report.set_running(true);
  return {true, held.stop.get_token()};
}

void HeldTasks::NearlyDone(const std::string& task, int64_t fence) {
  {
    std::lock_guard lock(mutex_);
    const auto found = held_.find(task);
    if (found == held_.end() || found->second.report.fence() != fence ||
        std::exchange(found->second.nearly_done, true))
      return;
  }
  changed_();
}

void HeldTasks::Finish(v1::TaskReport report) {
  {
    std::lock_guard lock(mutex_);
    const auto found = held_.find(report.task());
    if (found == held_.end() || found->second.report.fence() != report.fence()) return;
    found->second.report = std::move(report);
  }
  changed_();
}

void HeldTasks::Forget(const std::string& task) {
  std::stop_source stop(std::nostopstate);
  {
    std::lock_guard lock(mutex_);
    const auto found = held_.find(task);
    if (found == held_.end()) return;
    stop = found->second.stop;
    held_.erase(found);
  }
  stop.request_stop();  // its callbacks may take locks of their own
}

void HeldTasks::StopAll() {
  std::vector<std::stop_source> stops;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [task, held] : held_) stops.push_back(held.stop);
  }
  for (std::stop_source& stop : stops) stop.request_stop();
}

std::set<std::string> HeldTasks::RunningDevices() const {
  std::lock_guard lock(mutex_);
  std::set<std::string> devices;
  for (const auto& [task, held] : held_)
    if (held.kind == v1::TIME && held.report.has_running() && !held.nearly_done)
      devices.insert(held.device_uuid);
  return devices;
}

std::vector<v1::TaskReport> HeldTasks::Reports() const {
  std::lock_guard lock(mutex_);
  std::vector<v1::TaskReport> reports;
  for (const auto& [task, held] : held_) reports.push_back(held.report);
  return reports;
}

int HeldTasks::Running(v1::TaskKind kind) const {
  std::lock_guard lock(mutex_);
  int running = 0;
  for (const auto& [task, held] : held_) running += held.kind == kind && held.report.has_running();
  return running;
}

bool HeldTasks::HasFinished() const {
  std::lock_guard lock(mutex_);
  for (const auto& [task, held] : held_)
    if (!held.report.has_running()) return true;
  return false;
}

bool HeldTasks::empty() const {
  std::lock_guard lock(mutex_);
  return held_.empty();
}

}  // namespace fusion
