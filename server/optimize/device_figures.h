// The figures that a device was measured to reach, and what they say of times.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/store/measurement_store.h"
#include "fusion/v1/program.pb.h"
#include "server/target/device_description.h"

namespace fusion {

// Returns whether the rate of the device's copies is known to a fifth. Devices that do not say how far their
// copies differed are believed.
bool HasSteadyBandwidth(const DeviceDescription& device);

// Returns whether a program with such times, measured with nothing in the caches, was faster than moving so
// many bytes allows. It is true only where that means something: of data that the caches cannot hold, where
// the rate of copies is steady, and beyond the spread of that rate.
bool IsBelowFloor(const DeviceDescription& device, double floor_bytes, const v1::Statistics& cold);

// Returns the device. Where its copies were measured on a busy machine, it has the rate that was remembered
// for such a device and driver when it was steady, if there is one. Errors are those of the store.
absl::StatusOr<DeviceDescription> WithSteadyBandwidth(DeviceDescription device, MeasurementStore& store);

// Stores the table of benchmarks of the device. A rate of copies that is not steady is stored only where
// nothing is known.
absl::Status RememberDevice(const DeviceDescription& device, MeasurementStore& store, Timestamp now);

}  // namespace fusion
