// The thread that makes the device: a driver takes tenths of a second to begin.
#pragma once

#include "client/partition/background_start.h"
#include "client/partition/device.h"

namespace fusion {

using DeviceStart = BackgroundStart<PartitionDevice>;

}  // namespace fusion
