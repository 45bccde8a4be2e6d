#include "server/dispatch/worker_registry.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace fusion {
namespace {

constexpr char kWorkerPrefix[] = "workers/";
constexpr size_t kMostNamed = 3;  // of workers that have the same

std::string HoldName(const std::string& task, int64_t fence) { return absl::StrCat(task, " ", fence); }

v1::SynchronizeRequest OfferOf(const v1::SynchronizeRequest& request) {
  v1::SynchronizeRequest offer;
  *offer.mutable_devices() = request.devices();
  *offer.mutable_problems() = request.problems();
  *offer.mutable_builds() = request.builds();
  *offer.mutable_confinement() = request.confinement();
  offer.set_version(request.version());
  return offer;
}

// Returns why the device is taken out; "": it is sound.
std::string ProblemOf(const v1::SynchronizeRequest& offer, const v1::DeviceDescription& device) {
  for (const v1::DeviceProblem& problem : offer.problems())
    if (problem.device_uuid() == device.uuid())
      return problem.reason().empty() ? "unknown" : problem.reason();
  return "";
}

// Returns how long the device had been out when the worker said so; none: it is sound.
std::optional<std::chrono::duration<double>> OutFor(const v1::SynchronizeRequest& offer,
                                                    const v1::DeviceDescription& device) {
  for (const v1::DeviceProblem& problem : offer.problems())
    if (problem.device_uuid() == device.uuid()) return std::chrono::duration<double>(problem.seconds());
  return std::nullopt;
}

}  // namespace

std::string LowerCaseName(v1::Target target) {
  return target == v1::TARGET_AUTO ? "auto" : absl::AsciiStrToLower(v1::Target_Name(target));
}

WorkerRegistry::Contact WorkerRegistry::Touch(const v1::SynchronizeRequest& request, Timestamp now,
                                              int64_t call) {
  std::lock_guard<std::mutex> lock(mutex_);
  Entry& entry = workers_[request.worker()];
  if (entry.replaced_instances.contains(request.instance())) return Contact::kReplaced;
  const bool was_connected = Connected(entry, now);
  Contact contact = Contact::kKnown;
  if (entry.instance != request.instance() || !entry.greeted) {
    contact = entry.instance == request.instance() ? Contact::kKnown : Contact::kNewInstance;
    std::set<std::string> replaced = std::move(entry.replaced_instances);
    if (!entry.instance.empty() && entry.instance != request.instance()) replaced.insert(entry.instance);
    entry = Entry{};
    entry.greeted = true;
    entry.instance = request.instance();
    entry.replaced_instances = std::move(replaced);
    const auto drained = drained_before_.find(request.worker());
    entry.told_to_drain = drained != drained_before_.end() && drained->second == request.instance();
  }
  entry.last_contact = now;
  entry.lost = false;
  const bool newest = call == 0 || call >= entry.last_call;
  entry.last_call = std::max(entry.last_call, call);
  // Its connection may have ended before it was taken up.
  if (entry.last_call > entry.broken_call || call == 0)
    entry.broke = Timestamp();
  else if (entry.broke == Timestamp())
    entry.broke = now;
  const bool offers_more = newest && entry.offer.problems_size() > request.problems_size();
  if (newest) {
    entry.offer = OfferOf(request);
    entry.says_draining = request.draining();
    entry.running_tasks = 0;
    for (const v1::TaskReport& report : request.tasks()) entry.running_tasks += report.running() ? 1 : 0;
  }
  if (contact == Contact::kNewInstance || !was_connected || offers_more) {
    ++version_;
    changed_.notify_all();
  }
  return contact;
}

void WorkerRegistry::CallBroke(const std::string& worker, int64_t call, Timestamp now) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = workers_.find(worker);
  if (found == workers_.end() || call == 0) return;
  Entry& entry = found->second;
  entry.broken_call = std::max(entry.broken_call, call);
  if (entry.last_call <= entry.broken_call && entry.broke == Timestamp()) entry.broke = now;
}

std::vector<std::string> WorkerRegistry::TakeSilentSince(Timestamp then) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::string> silent;
  for (auto& [name, entry] : workers_) {
    if (entry.broke == Timestamp() || entry.broke > then) continue;
    entry.broke = Timestamp();
    silent.push_back(name);
  }
  return silent;
}

void WorkerRegistry::Lose(const std::string& worker) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (auto found = workers_.find(worker); found != workers_.end()) found->second.lost = true;
}

bool WorkerRegistry::DeviceIsLost(const std::string& device_uuid, Timestamp now,
                                  std::chrono::microseconds out_patience) const {
  std::lock_guard<std::mutex> lock(mutex_);
  bool known = false;
  for (const auto& [name, entry] : workers_)
    for (const v1::DeviceDescription& device : entry.offer.devices()) {
      if (device.uuid() != device_uuid || !entry.greeted) continue;
      known = true;
      if (!Connected(entry, now) || entry.told_to_drain || entry.says_draining) continue;
      const auto out = OutFor(entry.offer, device);
      if (!out.has_value() || *out + (now - entry.last_contact) <= out_patience) return false;
    }
  return known;
}

void WorkerRegistry::Answered(const std::string& worker, const std::string& instance, Timestamp now) {
  std::lock_guard<std::mutex> lock(mutex_);
  Entry& entry = workers_[worker];
  if (entry.instance == instance) entry.last_contact = now;
}

void WorkerRegistry::RestoreProcesses(const std::map<std::string, std::vector<std::string>>& processes) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [worker, instances] : processes) {
    if (instances.empty()) continue;
    Entry& entry = workers_[worker];
    entry.instance = instances.back();
    entry.replaced_instances = {instances.begin(), instances.end() - 1};
  }
}

void WorkerRegistry::RestoreDrained(std::map<std::string, std::string> drained) {
  std::lock_guard<std::mutex> lock(mutex_);
  drained_before_ = std::move(drained);
}

absl::StatusOr<std::string> WorkerRegistry::Drain(const std::string& name) {
  const std::string worker(absl::StripPrefix(name, kWorkerPrefix));
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = workers_.find(worker);
  if (found == workers_.end() || !found->second.greeted) {
    std::vector<std::string> names;
    for (const auto& [known, entry] : workers_)
      if (entry.greeted) names.push_back(kWorkerPrefix + known);
    return absl::NotFoundError(absl::StrCat("there is no worker ", kWorkerPrefix, worker, "; known: ",
                                            names.empty() ? "none" : absl::StrJoin(names, ", ")));
  }
  found->second.told_to_drain = true;
  return found->second.instance;
}

bool WorkerRegistry::Draining(const std::string& worker) const {
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = workers_.find(worker);
  return found != workers_.end() && (found->second.told_to_drain || found->second.says_draining);
}

bool WorkerRegistry::FirstCancellation(const std::string& worker, const v1::TaskReport& report) {
  std::lock_guard<std::mutex> lock(mutex_);
  return workers_[worker].cancellations.insert(HoldName(report.task(), report.fence())).second;
}

int WorkerRegistry::CountResent(const std::string& worker, const std::string& task, int64_t fence) {
  std::lock_guard<std::mutex> lock(mutex_);
  return ++workers_[worker].resent[HoldName(task, fence)];
}

std::vector<v1::Worker> WorkerRegistry::Workers(Timestamp now) const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<v1::Worker> workers;
  for (const auto& [name, entry] : workers_) {
    if (!entry.greeted) continue;
    v1::Worker& worker = workers.emplace_back();
    worker.set_name(kWorkerPrefix + name);
    *worker.mutable_devices() = entry.offer.devices();
    *worker.mutable_problems() = entry.offer.problems();
    *worker.mutable_builds() = entry.offer.builds();
    *worker.mutable_confinement() = entry.offer.confinement();
    worker.set_version(entry.offer.version());
    const int64_t micros = entry.last_contact.time_since_epoch().count();
    worker.mutable_last_contact()->set_seconds(micros / 1000000);
    worker.mutable_last_contact()->set_nanos(static_cast<int32_t>(micros % 1000000 * 1000));
    worker.set_draining(entry.told_to_drain || entry.says_draining);
    worker.set_connected(Connected(entry, now));
    worker.set_running_tasks(entry.running_tasks);
  }
  return workers;
}

void WorkerRegistry::VisitDevices(v1::Target target, const std::string& arch, Timestamp now,
                                  const std::function<bool(const v1::DeviceDescription&)>& visit) const {
  for (const auto& [name, entry] : workers_) {
    if (!Connected(entry, now) || entry.told_to_drain || entry.says_draining) continue;
    for (const v1::DeviceDescription& device : entry.offer.devices()) {
      if (target != v1::TARGET_AUTO && device.target() != target) continue;
      if (!arch.empty() && device.arch() != arch) continue;
      if (ProblemOf(entry.offer, device).empty() && !visit(device)) return;
    }
  }
}

std::vector<v1::DeviceDescription> WorkerRegistry::Devices(v1::Target target, const std::string& arch,
                                                           Timestamp now) const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<v1::DeviceDescription> devices;
  VisitDevices(target, arch, now, [&](const v1::DeviceDescription& device) {
    devices.push_back(device);
    return true;
  });
  return devices;
}

bool WorkerRegistry::HasDevice(v1::Target target, const std::string& arch,
                               const std::function<bool(const v1::DeviceDescription&)>& wanted,
                               Timestamp now) const {
  std::lock_guard<std::mutex> lock(mutex_);
  bool found = false;
  VisitDevices(target, arch, now,
               [&](const v1::DeviceDescription& device) { return !(found = wanted(device)); });
  return found;
}

std::optional<v1::DeviceDescription> WorkerRegistry::AnotherDevice(const v1::DeviceDescription& device,
                                                                   Timestamp now) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const v1::DeviceDescription* beside = nullptr;  // of a worker that has the device
  for (const auto& [name, entry] : workers_) {
    if (!Connected(entry, now) || entry.told_to_drain || entry.says_draining) continue;
    const bool has_it = std::any_of(entry.offer.devices().begin(), entry.offer.devices().end(),
                                    [&](const auto& own) { return own.uuid() == device.uuid(); });
    for (const v1::DeviceDescription& other : entry.offer.devices()) {
      if (other.uuid() == device.uuid() || other.target() != device.target() ||
          other.arch() != device.arch() || other.name() != device.name() ||
          !ProblemOf(entry.offer, other).empty())
        continue;
      if (!has_it) return other;
      if (beside == nullptr) beside = &other;
    }
  }
  if (beside == nullptr) return std::nullopt;
  return *beside;
}

std::optional<v1::DeviceDescription> WorkerRegistry::KnownDevice(const std::string& device_uuid) const {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [name, entry] : workers_)
    for (const v1::DeviceDescription& device : entry.offer.devices())
      if (device.uuid() == device_uuid) return device;
  return std::nullopt;
}

bool WorkerRegistry::SomeoneOffers(const std::function<bool(const v1::SynchronizeRequest&)>& wanted,
                                   Timestamp now) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return std::any_of(workers_.begin(), workers_.end(), [&](const auto& known) {
    const Entry& entry = known.second;
    return Connected(entry, now) && !entry.told_to_drain && !entry.says_draining && wanted(entry.offer);
  });
}

std::string WorkerRegistry::Describe(Timestamp now) const {
  struct Alike {
    std::vector<std::string> names;  // kMostNamed at most
    int others = 0;
  };
  std::vector<std::pair<std::string, Alike>> groups;  // by what the workers have, in the order of the first
  std::unordered_map<std::string, size_t> group_of;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [name, entry] : workers_) {
      if (!Connected(entry, now)) continue;
      std::string has;
      const auto add = [&](const auto&... part) { absl::StrAppend(&has, has.empty() ? "" : ", ", part...); };
      for (const v1::DeviceDescription& device : entry.offer.devices()) {
        const std::string problem = ProblemOf(entry.offer, device);
        add(LowerCaseName(device.target()), " ", device.arch(), " ", device.name(),
            problem.empty() ? "" : ", taken out: ", problem);
      }
      if (has.empty()) add(entry.offer.builds().empty() ? "no device" : "builds only");
      if (entry.told_to_drain || entry.says_draining) add("draining");
      const auto [group, first] = group_of.emplace(std::move(has), groups.size());
      if (first) groups.emplace_back(group->first, Alike());
      Alike& alike = groups[group->second].second;
      if (alike.names.size() < kMostNamed)
        alike.names.push_back(name);
      else
        ++alike.others;
    }
  }
  if (groups.empty()) return "none";
  return absl::StrJoin(groups, "; ", [](std::string* text, const auto& group) {
    const auto& [has, alike] = group;
    absl::StrAppend(text, absl::StrJoin(alike.names, ", "));
    if (alike.others > 0) absl::StrAppend(text, " and ", alike.others, " more");
    absl::StrAppend(text, " (", has, ")");
  });
}

std::set<std::string> WorkerRegistry::DeviceNames(v1::Target target) const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::set<std::string> names;
  for (const auto& [name, entry] : workers_)
    for (const v1::DeviceDescription& device : entry.offer.devices())
      if (target == v1::TARGET_AUTO || device.target() == target) names.insert(device.name());
  return names;
}

int64_t WorkerRegistry::version() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return version_;
}

int64_t WorkerRegistry::WaitForChange(int64_t version, std::chrono::milliseconds at_most) const {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_for(lock, at_most, [&] { return version_ != version; });
  return version_;
}

void WorkerRegistry::Interrupt() {
  std::lock_guard<std::mutex> lock(mutex_);
  ++version_;
  changed_.notify_all();
}

}  // namespace fusion
