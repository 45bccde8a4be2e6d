// The device of a job.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/optimize/pipeline_context.h"
#include "server/target/device_description.h"

namespace fusion {

// A job waits so long for a worker with a fitting device, unless it says so itself.
inline constexpr std::chrono::seconds kDevicePatience(30);
std::chrono::milliseconds DevicePatience(const v1::JobLimits& limits);

// Tells whoever watches the job.
void Emit(const PipelineContext& context, v1::JobEvent event);

// Returns the device of a request, for which it waits so long. A device of another architecture than the one
// asked for is told by *warning.
absl::StatusOr<DeviceDescription> RequestedDevice(v1::Target target, const std::string& arch,
                                                  const std::string& kind, std::chrono::milliseconds patience,
                                                  const PipelineContext& context, std::string* warning);

// Returns that, or else one that was there before, or one that is described for the architecture, which
// *notes tell.
absl::StatusOr<DeviceDescription> RequestedOrDescribedDevice(
    v1::Target target, const std::string& arch, const std::string& kind, std::chrono::milliseconds patience,
    const PipelineContext& context, std::string* warning, std::vector<std::string>* notes);

// Returns how long a job that measures nothing waits for its device: where the worker of this process is to
// come, it may be the very machine that is meant.
std::chrono::milliseconds PredictionPatience(v1::Target target, const std::string& arch,
                                             const PipelineContext& context);

// Returns the device that was there last of all that workers have ever had; for any target one of the first
// target that any was of. kind: only devices that have this in their names.
absl::StatusOr<std::optional<DeviceDescription>> LastSeenDevice(v1::Target target, const std::string& arch,
                                                                const std::string& kind, Store& store);

}  // namespace fusion
