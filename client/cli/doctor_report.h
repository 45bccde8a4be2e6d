// What fusion can use, and what the absence of the rest costs: the output of `doctor`.
#pragma once

#include <string>
#include <vector>

#include "client/cli/render.h"
#include "fusion/v1/device.pb.h"

namespace fusion {

struct Finding {
  std::string name;  // "host compiler"
  bool present = false;
  std::string detail;  // version or path; when absent, where it was looked for
  std::string cost;    // what is lost without it
};

struct DoctorReport {
  bool server_is_away = false;  // the one that is configured: every command that needs one fails
  std::vector<Finding> findings;
  struct Device {
    std::string worker;  // "workers/a", or "this machine"
    v1::DeviceDescription description;
  };
  std::vector<Device> devices;

  // Some device can build and time.
  bool usable() const { return !devices.empty(); }
};

// A line for each finding and each device.
std::string DoctorText(const DoctorReport& report, const TextStyle& style);
// "schema": "fusion.doctor/1".
Json DoctorJson(const DoctorReport& report);

}  // namespace fusion
