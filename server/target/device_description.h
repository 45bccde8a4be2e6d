// Devices and architectures as the search and the model see them, whatever their target.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "fusion/v1/device.pb.h"

namespace fusion {

// The protobuf that workers send.
using DeviceDescription = v1::DeviceDescription;

// Returns the limits of an architecture and the figures of a widespread device that has it, for predictions
// when none is connected; `name` says "described, not measured". An architecture that the target's profile
// does not describe ("" or a kind of host) has those of the default one; TARGET_AUTO stands for the target
// that the architecture is of, else for the host.
DeviceDescription DescribedDevice(v1::Target target, const std::string& arch = "");

// Returns a copy of a device's limits with safe values where a worker left them out.
DeviceDescription WithDefaults(DeviceDescription device);

struct ArchChoice {
  std::string arch;     // the name of an architecture that code is made for, or "" for any
  std::string warning;  // not empty when `arch` is not what was asked for; for people
};

// Returns the architecture that an architecture asked for stands for. A CUDA architecture that is not known
// ("sm_87", "sm_130") is the nearest older one, with a warning; so is one with features of its own
// ("sm_90a"). "" is any. InvalidArgument, naming what there is: an architecture older than all known ones,
// one of another target, or no name of one. TARGET_AUTO permits all targets.
absl::StatusOr<ArchChoice> ChooseArch(v1::Target target, const std::string& arch);

}  // namespace fusion
