// Finds what a worker would have on this machine: compilers, devices, and means to confine code.
#pragma once

#include <string>
#include <vector>

#include "fusion/v1/device.pb.h"

namespace fusion {

struct Finding {
  std::string name;  // "host compiler"
  bool present = false;
  std::string detail;  // version or path; when absent, where it was looked for
  std::string cost;    // what is lost without it
};

struct LocalMachine {
  std::vector<Finding> programs;         // compilers
  std::vector<Finding> sandboxes;        // of runners, of compilers
  std::vector<Finding> device_findings;  // the runner, and a CUDA device
  std::vector<v1::DeviceDescription> devices;
};
// Asks for devices only with `devices`: a runner measures them, which takes about a second.
LocalMachine ExamineLocalMachine(bool devices);

// Says whether native code of candidates would be confined here; *why_not: what is missing.
bool HostCodeIsConfined(std::string* why_not);

}  // namespace fusion
