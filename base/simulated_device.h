// The name of the driver tells a device that is not there from others.
#pragma once

namespace fusion {

// Simulated devices have this in the place of the version of a driver. All times of theirs are invented and
// no result is verified.
inline constexpr char kSimulatedDriver[] = "simulated";

}  // namespace fusion
