#include "server/dispatch/device_jobs.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

namespace fusion {

// Not by how many jobs they have had: a device that comes late would get all until it had had as many as
// those that were there before.
std::string DeviceJobs::LeastUsed(const std::vector<std::string>& uuids) const {
  std::map<std::string, std::map<std::string, int>> jobs;  // by user and device
  std::map<std::string, int> jobs_of_user;
  for (const auto& [name, job] : jobs_) {
    if (std::find(uuids.begin(), uuids.end(), job.uuid) == uuids.end()) continue;
    ++jobs[job.user][job.uuid];
    ++jobs_of_user[job.user];
  }
  std::map<std::string, double> demand;  // by device
  for (const auto& [user, on_devices] : jobs) {
    const double weight = std::min(1.0, static_cast<double>(uuids.size()) / jobs_of_user[user]);
    for (const auto& [uuid, count] : on_devices) demand[uuid] += weight * count;
  }
  const auto order = [&](const std::string& uuid) {
    const auto found = demand.find(uuid);
    const auto chosen = last_chosen_.find(uuid);
    // Sums that differ by rounding alone are equal.
    return std::tuple(std::llround(found == demand.end() ? 0 : 1e6 * found->second),
                      chosen == last_chosen_.end() ? 0 : chosen->second, uuid);
  };
  return *std::min_element(uuids.begin(), uuids.end(),
                           [&](const auto& a, const auto& b) { return order(a) < order(b); });
}

void DeviceJobs::Bind(const std::string& job, const std::string& user, const std::string& uuid) {
  last_chosen_[uuid] = ++choices_;
  if (!job.empty()) jobs_[job] = {user, uuid};
}

std::optional<DeviceJobs::Job> DeviceJobs::Release(const std::string& job) {
  auto released = jobs_.extract(job);
  if (released.empty()) return std::nullopt;
  return std::move(released.mapped());
}

}  // namespace fusion
