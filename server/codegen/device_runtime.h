// The device runtime of generated kernels, library/device, as one text.
#pragma once

#include <string>

namespace fusion {

// Returns fusion_device.h with the headers that it includes from its own folder pasted in. NVRTC and exported
// folders need no other.
const std::string& DeviceRuntime();

}  // namespace fusion
