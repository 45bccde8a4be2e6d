// Which job has which device, and which device the next job gets.
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
  // Of these, of which there is at least one, the device that is the least in demand: a job counts as one,
  // but all jobs of a user together as no more than there are devices, so that the many of one, who gets his
  // share of each device however many they are, do not hide where those of others are. Of equals the one that
  // was chosen the longest ago.
  std::string LeastUsed(const std::vector<std::string>& uuids) const;
  // The job has the device until it is released; job "": somebody who only looks, and has had his turn.
  void Bind(const std::string& job, const std::string& user, const std::string& uuid);
  struct Job {
    std::string user;
    std::string uuid;  // the device that it has
  };
  // None: the job has no device.
  std::optional<Job> Release(const std::string& job);

 private:
  std::map<std::string, Job> jobs_;
  std::map<std::string, int64_t> last_chosen_;  // by uuid, of choices_
  int64_t choices_ = 0;
};

}  // namespace fusion
