#include "server/target/device_description.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "server/target/target.h"

namespace fusion {
namespace {

using Architecture = v1::TargetProfile::Architecture;

const Architecture* Find(const Target& target, const std::string& arch) {
  for (const Architecture& architecture : target.profile().architectures())
    if (architecture.device().arch() == arch) return &architecture;
  return nullptr;
}

absl::Status NoArch(v1::Target target, const std::string& arch) {
  std::vector<std::string> names;
  for (const Target* each : Targets())
    if (target == v1::TARGET_AUTO || each->id() == target) names.push_back(each->ArchsText());
  // An answer does not repeat what is no name: it may hold anything.
  const bool printable =
      arch.size() <= kLongestArch && std::all_of(arch.begin(), arch.end(), absl::ascii_isgraph);
  return absl::InvalidArgumentError(absl::StrCat("must be one of ", absl::StrJoin(names, ", or of "),
                                                 printable ? absl::StrCat(", not '", arch, "'") : ""));
}

}  // namespace

DeviceDescription DescribedDevice(v1::Target target, const std::string& arch) {
  const Architecture* described = nullptr;
  for (const Target* each : Targets())
    if (described == nullptr && (target == v1::TARGET_AUTO || each->id() == target))
      described = Find(*each, arch);
  const v1::TargetProfile& profile = TargetOf(target).profile();
  if (described == nullptr) described = Find(TargetOf(target), profile.default_architecture());
  DeviceDescription device = described->device();
  device.set_name(absl::StrCat(device.name(), " (described, not measured)"));
  if (!arch.empty()) device.set_arch(arch);
  return WithDefaults(std::move(device));
}

DeviceDescription WithDefaults(DeviceDescription device) {
  const DeviceDescription& defaults = TargetOf(device.target()).profile().defaults();
  const auto known = [](auto value, auto otherwise) { return value > 0 ? value : otherwise; };
  device.set_multiprocessors(known(device.multiprocessors(), defaults.multiprocessors()));
  device.set_max_threads_per_block(known(device.max_threads_per_block(), defaults.max_threads_per_block()));
  device.set_max_threads_per_multiprocessor(
      known(device.max_threads_per_multiprocessor(), defaults.max_threads_per_multiprocessor()));
  device.set_max_blocks_per_multiprocessor(
      known(device.max_blocks_per_multiprocessor(), defaults.max_blocks_per_multiprocessor()));
  device.set_registers_per_multiprocessor(
      known(device.registers_per_multiprocessor(), defaults.registers_per_multiprocessor()));
  device.set_shared_bytes_per_block(
      known(device.shared_bytes_per_block(), defaults.shared_bytes_per_block()));
  device.set_shared_bytes_per_multiprocessor(
      known(device.shared_bytes_per_multiprocessor(), defaults.shared_bytes_per_multiprocessor()));
  device.set_l2_bytes(known(device.l2_bytes(), defaults.l2_bytes()));
  device.set_copy_bytes_per_second(known(device.copy_bytes_per_second(), defaults.copy_bytes_per_second()));
  device.set_peak_flops(known(device.peak_flops(), defaults.peak_flops()));
  device.set_launch_seconds(known(device.launch_seconds(), defaults.launch_seconds()));
  return device;
}

absl::StatusOr<ArchChoice> ChooseArch(v1::Target target, const std::string& arch) {
  if (arch.empty()) return ArchChoice{};
  for (const Target* each : Targets()) {
    if (target != v1::TARGET_AUTO && each->id() != target) continue;
    FUSION_ASSIGN_OR_RETURN(auto choice, each->FindArch(arch));
    if (choice.has_value()) return *std::move(choice);
  }
  return NoArch(target, arch);
}

}  // namespace fusion
