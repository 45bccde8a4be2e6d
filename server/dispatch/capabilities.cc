#include "server/dispatch/capabilities.h"

#include <algorithm>
#include <string>
#include <utility>

namespace fusion {

std::vector<Capability> BuildCapabilities(const v1::SynchronizeRequest& request) {
  std::vector<Capability> capabilities;
  const auto add = [&](v1::Target target, const std::string& arch) {
    Capability capability{v1::Target_Name(target), arch, ""};
    for (const Capability& other : capabilities)
      if (other.target == capability.target && other.arch == capability.arch) return;
    capabilities.push_back(std::move(capability));
  };
  for (const v1::BuildCapability& build : request.builds()) add(build.target(), build.arch());
  // Workers that say their version say what they build, and those without a compiler nothing.
  if (request.builds().empty() && request.version().empty())
    for (const v1::DeviceDescription& device : request.devices())
      add(device.target(), device.target() == v1::HOST ? device.arch() : "");
  return capabilities;
}

std::vector<Capability> TimeCapabilities(const v1::SynchronizeRequest& request) {
  std::vector<Capability> capabilities;
  for (const v1::DeviceDescription& device : request.devices()) {
    const auto is_this = [&](const std::string& uuid) { return uuid == device.uuid(); };
    const auto is_out = [&](const v1::DeviceProblem& problem) {
      return problem.device_uuid() == device.uuid();
    };
    if (std::any_of(request.problems().begin(), request.problems().end(), is_out)) continue;
    if (!request.free_devices().empty() &&
        std::none_of(request.free_devices().begin(), request.free_devices().end(), is_this))
      continue;
    capabilities.push_back({v1::Target_Name(device.target()), device.arch(), device.uuid()});
  }
  return capabilities;
}

bool Matches(const Capability& capability, const TaskRequirements& requirements) {
  return capability.target == requirements.target &&
         (capability.arch.empty() || requirements.arch.empty() || capability.arch == requirements.arch) &&
         (requirements.device_uuid.empty() || capability.device_uuid == requirements.device_uuid);
}

std::vector<Capability> CapabilitiesFor(TaskKind kind, const v1::SynchronizeRequest& request) {
  return kind == TaskKind::kBuild ? BuildCapabilities(request) : TimeCapabilities(request);
}

bool CanDo(const v1::SynchronizeRequest& request, TaskKind kind, const TaskRequirements& requirements) {
  const std::vector<Capability> capabilities = CapabilitiesFor(kind, request);
  return std::any_of(capabilities.begin(), capabilities.end(),
                     [&](const Capability& capability) { return Matches(capability, requirements); });
}

}  // namespace fusion
