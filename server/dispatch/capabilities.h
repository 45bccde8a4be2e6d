// Tells what workers can do, and which tasks match that.
#pragma once

#include <vector>

#include "db/store/records.h"
#include "fusion/v1/worker.pb.h"

namespace fusion {

// Returns what a worker can build: what it says. A worker of an earlier version says nothing, and builds for
// its devices: for CUDA every arch (no device is needed to compile for it), for the host its own.
std::vector<Capability> BuildCapabilities(const v1::SynchronizeRequest& request);
// Returns what a worker can time: tasks for its devices in order, or, if it says whose lanes are idle, for
// those alone.
std::vector<Capability> TimeCapabilities(const v1::SynchronizeRequest& request);
// Applies the rule by which the ready queue gives out tasks.
bool Matches(const Capability& capability, const TaskRequirements& requirements);
// Returns the capabilities of the kind.
std::vector<Capability> CapabilitiesFor(TaskKind kind, const v1::SynchronizeRequest& request);
bool CanDo(const v1::SynchronizeRequest& request, TaskKind kind, const TaskRequirements& requirements);

}  // namespace fusion
