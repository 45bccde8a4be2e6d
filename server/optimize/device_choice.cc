#include "server/optimize/device_choice.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/target/target.h"

namespace fusion {

void Emit(const PipelineContext& context, v1::JobEvent event) {
  if (context.emit) context.emit(std::move(event));
}

std::chrono::milliseconds DevicePatience(const v1::JobLimits& limits) {
  if (limits.queue_seconds() <= 0) return kDevicePatience;
  return std::chrono::milliseconds(static_cast<int64_t>(limits.queue_seconds() * 1000));
}

absl::StatusOr<DeviceDescription> RequestedDevice(v1::Target target, const std::string& arch,
                                                  const std::string& kind, std::chrono::milliseconds patience,
                                                  const PipelineContext& context, std::string* warning) {
  FUSION_ASSIGN_OR_RETURN(auto choice, ChooseArch(target, arch));
  const auto choose = [&](std::chrono::milliseconds longest) {
    return context.dispatcher.ChooseDevice(target, arch, longest, context.cancellation, context.job,
                                           choice.arch, kind);
  };
  const double limit = patience.count() > 0 ? context.limits.queue_seconds() : 0;
  if (patience.count() > 0) patience = context.dispatcher.Patience(DevicePatience(context.limits));
  auto device = choose(std::chrono::milliseconds(0));
  if (absl::IsUnavailable(device.status()) && patience.count() > 0) {
    v1::JobEvent event;
    event.set_note(context.dispatcher.only_worker_is_here()
                       ? "the worker of this process is starting"
                       : absl::StrCat(device.status().message(), "; waiting for one for up to ",
                                      patience.count() / 1000, " s"));
    Emit(context, event);
    if (context.waits_for) context.waits_for(std::string(device.status().message()), patience);
    if (context.waits_for_device) context.waits_for_device(true);
    device = choose(patience);
    if (context.waits_for) context.waits_for("", std::chrono::milliseconds(0));
    if (context.waits_for_device) context.waits_for_device(false);
    // It may have no place of its own for a search, then.
    if (context.cancellation.cancelled()) return absl::CancelledError("cancelled while waiting for a device");
    // Tasks that have waited for so long end with this status too.
    if (limit > 0 && absl::IsUnavailable(device.status()) && context.dispatcher.running() &&
        !context.dispatcher.only_worker_is_here())
      return absl::DeadlineExceededError(device.status().message());
  }
  if (device.ok() && device->arch() != arch) *warning = choice.warning;
  return device;
}

absl::StatusOr<std::optional<DeviceDescription>> LastSeenDevice(v1::Target target, const std::string& arch,
                                                                const std::string& kind, Store& store) {
  FUSION_ASSIGN_OR_RETURN(auto records, store.Devices());
  std::sort(records.begin(), records.end(),
            [](const DeviceRecord& a, const DeviceRecord& b) { return a.last_seen > b.last_seen; });
  for (const Target* each : Targets()) {
    if (target != v1::TARGET_AUTO && each->id() != target) continue;
    for (const DeviceRecord& record : records) {
      DeviceDescription device;
      if (device.ParseFromString(record.description) && (arch.empty() || device.arch() == arch) &&
          device.target() == each->id() &&
          absl::StrContains(absl::AsciiStrToLower(device.name()), absl::AsciiStrToLower(kind)))
        return device;
    }
  }
  return std::nullopt;
}

absl::StatusOr<DeviceDescription> RequestedOrDescribedDevice(
    v1::Target target, const std::string& arch, const std::string& kind, std::chrono::milliseconds patience,
    const PipelineContext& context, std::string* warning, std::vector<std::string>* notes) {
  absl::StatusOr<DeviceDescription> device = RequestedDevice(target, arch, kind, patience, context, warning);
  if (!absl::IsUnavailable(device.status())) return device;
  FUSION_ASSIGN_OR_RETURN(const ArchChoice choice, ChooseArch(target, arch));
  *warning = choice.warning;
  FUSION_ASSIGN_OR_RETURN(auto seen, LastSeenDevice(target, choice.arch, kind, context.store));
  if (!seen.has_value() && !kind.empty())
    return absl::InvalidArgumentError(
        absl::StrCat("no device that is called ", kind, " was ever here; --arch describes one"));
  if (seen.has_value()) {
    device = WithDefaults(*std::move(seen));
  } else {
    device = DescribedDevice(target, choice.arch);
  }
  notes->push_back(absl::StrCat("no such device is connected; predicted for ",
                                seen.has_value() ? "one that was: " : "", device->name()));
  return device;
}

std::chrono::milliseconds PredictionPatience(v1::Target target, const std::string& arch,
                                             const PipelineContext& context) {
  const bool may_be_this_machine = target != v1::CUDA && arch.empty();
  return context.dispatcher.only_worker_is_here() && may_be_this_machine ? kDevicePatience
                                                                         : std::chrono::seconds(0);
}

}  // namespace fusion
