// What workers can do, and which tasks need it.
#pragma once

#include <vector>

#include "db/store/records.h"
#include "fusion/v1/worker.pb.h"

namespace fusion {

// What a worker can build: what it says. One that says nothing, because it is of an earlier version, builds
// for its devices: for CUDA every arch (no device is needed to compile for it), for the host its own.
std::vector<Capability> BuildCapabilities(const v1::SynchronizeRequest& request);
// What it can time: on devices that it has in order; those alone whose lane is idle, if it says which.
std::vector<Capability> TimeCapabilities(const v1::SynchronizeRequest& request);
// The rule by which the ready queue gives out tasks.
bool Matches(const Capability& capability, const TaskRequirements& requirements);
// The capabilities of the kind.
std::vector<Capability> CapabilitiesFor(TaskKind kind, const v1::SynchronizeRequest& request);
bool CanDo(const v1::SynchronizeRequest& request, TaskKind kind, const TaskRequirements& requirements);

}  // namespace fusion
