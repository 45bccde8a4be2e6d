// Keeps which job has which device, and chooses the device of the next job.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fusion {

// Not thread safe.
class DeviceJobs {
 public:
  // Returns the least demanded of the devices (at least one). A job counts as one, but all jobs of a user
  // together as no more than there are devices: he gets his share of each device however many jobs he has, so
  // these do not hide where the jobs of others are. Of equals, the device chosen the longest ago is returned.
  std::string LeastUsed(const std::vector<std::string>& uuids) const;
  // The job has the device until it is released. With job "" the device only counts as chosen.
  void Bind(const std::string& job, const std::string& user, const std::string& uuid);
  struct Job {
    std::string user;
    std::string uuid;  // the device that it has
  };
  // Returns none if the job has no device.
  std::optional<Job> Release(const std::string& job);

 private:
  std::map<std::string, Job> jobs_;
  std::map<std::string, int64_t> last_chosen_;  // by uuid, of choices_
  int64_t choices_ = 0;
};

}  // namespace fusion
