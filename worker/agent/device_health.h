// Tells which devices are sound.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "fusion/v1/worker.pb.h"

namespace fusion {

// Thread safe.
class DeviceHealth {
 public:
  // `changed` is called, without a lock, when a device is taken out or comes back from now on.
  void OnChange(std::function<void()> changed);

  // The device is out until BringBack. When repeated, the newest reason stands, and the time of the first.
  void TakeOut(const std::string& device_uuid, const std::string& reason);
  void BringBack(const std::string& device_uuid);
  bool IsOut(const std::string& device_uuid) const;
  std::vector<v1::DeviceProblem> Problems() const;

 private:
  struct Problem {
    std::string reason;
    std::chrono::steady_clock::time_point since;
  };
  mutable std::mutex mutex_;
  std::function<void()> changed_;            // guarded by mutex_, as what follows
  std::map<std::string, Problem> problems_;  // by device
};

}  // namespace fusion
