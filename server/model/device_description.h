// The device as the search and the model see it: the protobuf that workers send.
#pragma once

#include "fusion/v1/device.pb.h"

namespace fusion {

using DeviceDescription = v1::DeviceDescription;

// Figures of an NVIDIA H100 / of a 2-core x86-64 host, for `explain` when no such device is connected. `name`
// says "described, not measured".
DeviceDescription DescribedDevice(v1::Target target);

// Copies of a device's limits with safe values where a worker left them out.
DeviceDescription WithDefaults(DeviceDescription device);

}  // namespace fusion
