// What a device was measured to reach, and what that says of times.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/store/measurement_store.h"
#include "fusion/v1/program.pb.h"
#include "server/target/device_description.h"

namespace fusion {

// Whether the rate of its copies is known to a fifth. Devices that do not say how far their copies differed
// are believed.
bool HasSteadyBandwidth(const DeviceDescription& device);

// Whether a program with such times, of which nothing was in the caches, was faster than moving so many bytes
// allows. That is said only where it means something: of data that the caches cannot hold, where the rate of
// copies is known steadily, and beyond what that leaves open.
bool IsBelowFloor(const DeviceDescription& device, double floor_bytes, const v1::Statistics& cold);

// The device. Where its copies were measured on a busy machine, with the rate that was remembered for such a
// device and driver when it was steady, if there is one. Errors are those of the store.
absl::StatusOr<DeviceDescription> WithSteadyBandwidth(DeviceDescription device, MeasurementStore& store);

// Stores what the device reaches, its table of benchmarks: a rate of copies that is not steady only where
// nothing is known.
absl::Status RememberDevice(const DeviceDescription& device, MeasurementStore& store, Timestamp now);

}  // namespace fusion
