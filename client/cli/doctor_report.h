// The output of `doctor`: what fusion can use, and what the absence of the rest costs.
#pragma once

#include <string>
#include <vector>

#include "client/cli/render.h"
#include "fusion/v1/device.pb.h"
#include "fusion/v1/optimizer.pb.h"
#include "worker/agent/local_machine.h"

namespace fusion {

struct DoctorReport {
  bool server_is_away = false;  // the one that is configured: every command that needs one fails
  std::vector<Finding> findings;
  struct Device {
    std::string worker;  // "workers/a", or "this machine"
    v1::DeviceDescription description;
    std::string problem;  // why it gets no work for now; "": it gets some
  };
  std::vector<Device> devices;
  v1::ListWorkersResponse workers;  // of the server; none: without one

  // Returns whether some device can build and time.
  bool usable() const;
};

// Notes the server's workers, and the devices of those that are connected: a device that is taken out, or
// whose worker is draining, is given no work, and has a problem. Returns "1 connected worker, 4 lost".
std::string AddWorkers(const v1::ListWorkersResponse& workers, DoctorReport* report);

// A line for each finding, each device and each worker that is connected.
std::string DoctorText(const DoctorReport& report, const TextStyle& style);
// "schema": "fusion.doctor/1".
Json DoctorJson(const DoctorReport& report);

}  // namespace fusion
