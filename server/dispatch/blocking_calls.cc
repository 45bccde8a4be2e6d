// The calls of Dispatcher that job threads wait in: Build, Time, ChooseDevice.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "server/dispatch/dispatcher.h"

namespace fusion {
namespace {

absl::Status Stopped() {
  return absl::UnavailableError("the server is stopping; the job goes on when it is started again");
}

// "cuda device of arch sm_90", "device called H200".
std::string Kind(v1::Target target, const std::string& arch, const std::string& name = "") {
  return absl::StrCat(target == v1::TARGET_AUTO ? "" : LowerCaseName(target) + " ", "device",
                      arch.empty() ? "" : " of arch ", arch, name.empty() ? "" : " called ", name);
}
std::string Wanted(v1::Target target, const std::string& arch, const std::string& name = "") {
  return "a " + Kind(target, arch, name);
}
bool IsCalled(const std::string& name, const std::string& wanted) {
  return absl::StrContains(absl::AsciiStrToLower(name), absl::AsciiStrToLower(wanted));
}
v1::Target TargetOf(const TaskRequirements& need) {
  v1::Target target = v1::TARGET_AUTO;
  v1::Target_Parse(need.target, &target);
  return target;
}
// Names the worker that a task which none takes needs: "worker with a cuda device of arch sm_90".
std::string WantedWorker(TaskKind kind, const TaskRequirements& need) {
  const v1::Target target = TargetOf(need);
  if (kind == TaskKind::kTime) return "worker with " + Wanted(target, need.arch);
  return absl::StrCat("worker with a compiler for ", LowerCaseName(target), " ", need.arch);
}

// "300 s", "0.5 s".
std::string SecondsText(std::chrono::milliseconds time) {
  return absl::StrCat(std::chrono::duration<double>(time).count(), " s");
}

}  // namespace

absl::StatusOr<std::vector<BuildOutcome>> Dispatcher::Build(const std::string& job,
                                                            const std::vector<v1::BuildTask>& tasks,
                                                            CancellationToken token,
                                                            const BuildProgress& progress) {
  std::vector<BuildOutcome> outcomes(tasks.size());
  int done = 0, reused = 0, failed = 0;
  const auto count = [&](int index, v1::BuildResult result, bool was_known) {
    ++done;
    reused += was_known ? 1 : 0;
    failed += result.outcome() == v1::OK ? 0 : 1;
    outcomes[index] = BuildOutcome{std::move(result), was_known};
    if (progress) progress(done, static_cast<int>(tasks.size()), reused, failed);
  };

  std::vector<std::string> keys;
  for (const v1::BuildTask& task : tasks) keys.push_back(task.key());
  absl::StatusOr<std::map<std::string, BuildRecord>> cached = store_.UseBuilds(job, keys, clock_.Now());
  if (!cached.ok()) return cached.status();

  std::vector<TaskSpec> specs;
  std::vector<int> index_of_spec;
  for (size_t i = 0; i < tasks.size(); ++i) {
    auto found = cached->find(tasks[i].key());
    v1::Outcome outcome = v1::OUTCOME_UNSPECIFIED;
    if (found == cached->end() || !v1::Outcome_Parse(found->second.outcome, &outcome)) {
      specs.push_back(SpecOf(tasks[i]));
      index_of_spec.push_back(static_cast<int>(i));
      continue;
    }
    v1::BuildResult result;
    result.set_outcome(outcome);
    result.set_binary(found->second.binary_digest);
    result.set_log(found->second.log);
    result.set_seconds(found->second.seconds);
    count(static_cast<int>(i), std::move(result), true);
  }
  absl::Status built = RunTasks(job, specs, token, [&](int index, const TaskRecord& task, bool was_known) {
    FUSION_ASSIGN_OR_RETURN(v1::BuildResult result, BuildResultOf(task));
    count(index_of_spec[index], std::move(result), was_known);
    return absl::OkStatus();
  });
  if (!built.ok()) return built;
  return outcomes;
}

absl::Status Dispatcher::Time(const std::string& job, const std::vector<v1::TimeTask>& tasks,
                              const v1::DeviceDescription& device, CancellationToken token,
                              const TimeResultCallback& on_result) {
  std::vector<TaskSpec> specs;
  for (const v1::TimeTask& task : tasks) specs.push_back(SpecOf(job, task, device));
  return RunTasks(job, specs, token, [&](int index, const TaskRecord& task, bool reused) {
    FUSION_ASSIGN_OR_RETURN(v1::TimeResult result, TimeResultOf(task));
    on_result(index, result, reused);
    return absl::OkStatus();
  });
}

absl::Status Dispatcher::Enqueue(const std::string& job, const std::vector<TaskSpec>& specs) {
  Gate::Pass pass(*gate_);
  if (!pass) return Stopped();
  FUSION_RETURN_IF_ERROR(queue_.Ensure(job, specs).status());
  synchronizer_.WakeForTasks();
  return absl::OkStatus();
}

// A call of RunTasks while it waits.
struct Dispatcher::TaskWait {
  struct Waiting {
    std::string task;
    std::vector<int> indices;
    bool reused = false;
  };
  const std::string& job;
  const TaskEnded& ended;
  std::map<std::string, Waiting> waiting;  // by key
  std::map<std::string, Need> needs;       // of the same tasks
  // The job waits this long for a worker that can run its tasks: its own queue_limit, if it has one.
  bool limited = false;
  std::chrono::milliseconds patience{0};
  Timestamp asked;
  std::chrono::steady_clock::time_point last_able = std::chrono::steady_clock::now();
  bool told = false;  // that it waits for a worker
};

absl::Status Dispatcher::RunTasks(const std::string& job, const std::vector<TaskSpec>& specs,
                                  const CancellationToken& token, const TaskEnded& ended) {
  if (token.cancelled()) return absl::CancelledError(absl::StrCat("job ", job, " is cancelled"));
  if (specs.empty()) return absl::OkStatus();
  Gate::Pass pass(*gate_);
  if (!pass) return Stopped();

  TaskWait wait{.job = job, .ended = ended};
  std::vector<std::string> keys;
  for (const TaskSpec& spec : specs) keys.push_back(spec.key);
  // Watched before they are queued, so that no end is missed.
  const std::shared_ptr<CompletionBoard::Watch> watch = board_.Open(keys);
  const CancellationToken::Registration registration = token.OnCancel([watch] { watch->Interrupt(); });

  FUSION_ASSIGN_OR_RETURN(std::vector<EnsuredTask> ensured, queue_.Ensure(job, specs));
  synchronizer_.WakeForTasks();

  std::vector<std::string> look_at;
  for (size_t i = 0; i < specs.size(); ++i) {
    const EnsuredTask& known = ensured[i];
    auto [entry, first] = wait.waiting.try_emplace(specs[i].key);
    if (first) {
      entry->second.task = known.task.id;
      entry->second.reused = !known.created;
      wait.needs[specs[i].key] = Need{known.task.id, specs[i].kind, specs[i].requirements};
      if (IsTerminal(known.task.state)) look_at.push_back(specs[i].key);
    }
    entry->second.indices.push_back(static_cast<int>(i));
  }
  FUSION_ASSIGN_OR_RETURN(JobRecord record, store_.GetJob(job));
  wait.limited = record.queue_limit.count() > 0;
  wait.patience = wait.limited ? std::chrono::ceil<std::chrono::milliseconds>(record.queue_limit)
                               : options_.no_worker_patience;
  wait.asked = clock_.Now();
  const auto turn = std::min(std::max(wait.patience, std::chrono::milliseconds(50)), options_.look_period);
  const std::shared_ptr<void> at_end(nullptr, [&](void*) { WaitsNoLonger(&wait); });
  while (true) {
    FUSION_RETURN_IF_ERROR(TakeEnded(look_at, &wait));
    if (wait.waiting.empty()) return absl::OkStatus();
    if (stopped()) return Stopped();
    if (token.cancelled()) {
      CancelTasks(job);
      return absl::CancelledError(absl::StrCat("job ", job, " is cancelled"));
    }
    FUSION_RETURN_IF_ERROR(CheckWorkers(&wait));
    look_at = watch->Wait(turn);
  }
}

void Dispatcher::CancelTasks(const std::string& job) {
  if (absl::Status cancelled = CancelJob(job); !cancelled.ok())
    spdlog::error("job {}: tasks not cancelled: {}", job, cancelled.ToString());
}

void Dispatcher::WaitsNoLonger(TaskWait* wait) {
  if (std::exchange(wait->told, false)) tell_waiting_(wait->job, "", std::chrono::milliseconds(0));
}

absl::Status Dispatcher::TakeEnded(const std::vector<std::string>& keys, TaskWait* wait) {
  std::vector<std::string> ids;
  for (const std::string& key : keys)
    if (auto found = wait->waiting.find(key); found != wait->waiting.end()) ids.push_back(found->second.task);
  FUSION_ASSIGN_OR_RETURN(std::vector<TaskRecord> tasks, store_.GetTasks(ids));
  for (const TaskRecord& task : tasks) {
    auto found = wait->waiting.find(task.key);
    if (found == wait->waiting.end() || !IsTerminal(task.state))
      continue;  // an earlier task of the same key has ended
    if (task.state == TaskState::kCancelled)
      return absl::CancelledError(absl::StrCat("job ", wait->job, " is cancelled"));
    if (task.failure == TaskFailure::kQueueTimeout) {
      CancelTasks(wait->job);
      const Need& need = wait->needs.at(task.key);
      return absl::DeadlineExceededError(absl::StrCat(
          task.failure_message, wait->limited ? absl::StrCat(", ", SecondsText(wait->patience)) : "",
          SomeoneCanRun({{task.key, need}}) ? "" : "; no " + WantedWorker(need.kind, need.requirements),
          "; connected: ", registry_.Describe(clock_.Now())));
    }
    const TaskWait::Waiting done = std::move(found->second);
    wait->waiting.erase(found);
    wait->needs.erase(task.key);
    for (int index : done.indices) FUSION_RETURN_IF_ERROR(wait->ended(index, task, done.reused));
  }
  return absl::OkStatus();
}

absl::Status Dispatcher::CheckWorkers(TaskWait* wait) {
  std::map<std::string, Need> queued;
  if (!SomeoneCanRun(wait->needs)) {
    FUSION_ASSIGN_OR_RETURN(queued, Queued(wait->needs));
  }
  if (queued.empty()) {
    wait->last_able = std::chrono::steady_clock::now();
    WaitsNoLonger(wait);
    return absl::OkStatus();
  }
  const Need& first = queued.begin()->second;
  if (std::optional<v1::DeviceDescription> lost = LostDevice(queued); lost.has_value()) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      lost_devices_[wait->job].insert(lost->uuid());
    }
    CancelTasks(wait->job);
    return absl::AbortedError(absl::StrCat("the device ", lost->name(), " ", lost->uuid(), " is lost"));
  }
  if (std::chrono::steady_clock::now() - wait->last_able >= wait->patience && !WorkersMayReturn()) {
    CancelTasks(wait->job);
    const std::string missing =
        absl::StrCat("no ", WantedWorker(first.kind, first.requirements), " has been connected for ",
                     SecondsText(wait->patience), ", and ", queued.size(),
                     " tasks wait for one; connected: ", registry_.Describe(clock_.Now()));
    // Tasks that have waited for as long as the job allows end with this status, too.
    return wait->limited ? absl::DeadlineExceededError(missing) : absl::UnavailableError(missing);
  }
  if (NoCompilerWillCome(queued)) {
    CancelTasks(wait->job);
    return absl::UnavailableError(absl::StrCat("this machine is without a compiler for ",
                                               LowerCaseName(TargetOf(first.requirements)),
                                               " code; `fusion-client doctor` says what was looked for"));
  }
  if (!tell_waiting_ || std::exchange(wait->told, true)) return absl::OkStatus();
  // The time of its tasks runs since they are queued, whoever was there meanwhile.
  const auto used = std::chrono::duration_cast<std::chrono::milliseconds>(clock_.Now() - wait->asked);
  std::chrono::milliseconds left =
      wait->limited ? std::max(wait->patience - used, std::chrono::milliseconds(0)) : wait->patience;
  if (WorkersMayReturn()) left = Patience(std::max(left, std::chrono::milliseconds(1)));
  tell_waiting_(wait->job,
                absl::StrCat(queued.size(), queued.size() == 1 ? " task waits" : " tasks wait", " for a ",
                             WantedWorker(first.kind, first.requirements), ", for up to ", SecondsText(left),
                             "; connected: ", registry_.Describe(clock_.Now())),
                left);
  return absl::OkStatus();
}

absl::StatusOr<std::map<std::string, Dispatcher::Need>> Dispatcher::Queued(
    const std::map<std::string, Need>& waiting) const {
  std::map<std::string, Need> queued;
  std::vector<std::string> ids;
  for (const auto& [key, need] : waiting) ids.push_back(need.task);
  FUSION_ASSIGN_OR_RETURN(std::vector<TaskRecord> tasks, store_.GetTasks(ids));
  for (const TaskRecord& task : tasks)
    if (task.state == TaskState::kQueued)
      if (auto need = waiting.find(task.key); need != waiting.end()) queued.insert(*need);
  return queued;
}

std::optional<v1::DeviceDescription> Dispatcher::LostDevice(const std::map<std::string, Need>& queued) const {
  const Timestamp now = clock_.Now();
  for (const auto& [key, need] : queued) {
    const std::string& uuid = need.requirements.device_uuid;
    if (need.kind != TaskKind::kTime || uuid.empty() ||
        !registry_.DeviceIsLost(uuid, now, options_.out_patience))
      continue;
    std::optional<v1::DeviceDescription> device = registry_.KnownDevice(uuid);
    if (device.has_value() && AnotherDevice(*device).has_value()) return device;
  }
  return std::nullopt;
}

std::optional<v1::DeviceDescription> Dispatcher::AnotherDevice(const v1::DeviceDescription& device) const {
  return registry_.AnotherDevice(device, clock_.Now());
}

bool Dispatcher::SomeoneCanRun(const std::map<std::string, Need>& waiting) const {
  return registry_.SomeoneOffers(
      [&](const v1::SynchronizeRequest& offer) {
        return std::any_of(waiting.begin(), waiting.end(), [&](const auto& entry) {
          return CanDo(offer, entry.second.kind, entry.second.requirements);
        });
      },
      clock_.Now());
}

bool Dispatcher::NoCompilerWillCome(const std::map<std::string, Need>& queued) const {
  // In this order: the worker may come while this is asked.
  return options_.only_worker_is_here &&
         std::any_of(queued.begin(), queued.end(),
                     [](const auto& entry) { return entry.second.kind == TaskKind::kBuild; }) &&
         registry_.SomeoneOffers([](const v1::SynchronizeRequest&) { return true; }, clock_.Now()) &&
         !SomeoneCanRun(queued);
}

// A device that is out for now may come back.
bool Dispatcher::NoDeviceWillCome(v1::Target target, const std::string& arch, const std::string& nearest_arch,
                                  const std::string& kind) const {
  if (!options_.only_worker_is_here) return false;
  return registry_.SomeoneOffers(
      [&](const v1::SynchronizeRequest& offer) {
        return std::none_of(
            offer.devices().begin(), offer.devices().end(), [&](const v1::DeviceDescription& device) {
              return (target == v1::TARGET_AUTO || device.target() == target) &&
                     (arch.empty() || device.arch() == arch || device.arch() == nearest_arch) &&
                     IsCalled(device.name(), kind);
            });
      },
      clock_.Now());
}

v1::DeviceDescription Dispatcher::LeastUsed(const std::vector<v1::DeviceDescription>& devices,
                                            const std::string& job, const std::string& user) {
  std::set<std::string> lost;
  if (auto found = lost_devices_.find(job); found != lost_devices_.end()) lost = found->second;
  std::vector<std::string> uuids, found_again;
  for (const v1::DeviceDescription& device : devices)
    (lost.contains(device.uuid()) ? found_again : uuids).push_back(device.uuid());
  const std::string chosen = device_jobs_.LeastUsed(uuids.empty() ? found_again : uuids);
  device_jobs_.Bind(job, user, chosen);
  return *std::find_if(devices.begin(), devices.end(),
                       [&](const v1::DeviceDescription& device) { return device.uuid() == chosen; });
}

std::function<bool(const v1::DeviceDescription&)> Dispatcher::OfKind(v1::Target target,
                                                                     const std::string& kind) const {
  if (kind.empty()) return [](const v1::DeviceDescription&) { return true; };
  // The name of a kind may begin that of another.
  return [kind, whole = KnownKinds(target).contains(kind)](const v1::DeviceDescription& device) {
    return whole ? device.name() == kind : IsCalled(device.name(), kind);
  };
}

std::vector<v1::DeviceDescription> Dispatcher::Devices(v1::Target target, const std::string& arch,
                                                       const std::string& nearest_arch,
                                                       const std::string& kind) const {
  const auto wanted = OfKind(target, kind);
  const auto of = [&](const std::string& wanted_arch) {
    std::vector<v1::DeviceDescription> devices = registry_.Devices(target, wanted_arch, clock_.Now());
    std::erase_if(devices, [&](const v1::DeviceDescription& device) { return !wanted(device); });
    return devices;
  };
  std::vector<v1::DeviceDescription> devices = of(arch);
  if (devices.empty() && !nearest_arch.empty() && nearest_arch != arch) devices = of(nearest_arch);
  return devices;
}

absl::Status Dispatcher::NoDevice(v1::Target target, const std::string& arch, const std::string& nearest_arch,
                                  const std::string& kind) const {
  return absl::UnavailableError(
      absl::StrCat("no worker with ", Wanted(target, arch, kind),
                   nearest_arch.empty() || nearest_arch == arch ? "" : absl::StrCat(" or ", nearest_arch),
                   " is connected; connected: ", registry_.Describe(clock_.Now())));
}

absl::Status Dispatcher::FindDevice(v1::Target target, const std::string& arch,
                                    const std::string& nearest_arch, const std::string& kind) const {
  const auto wanted = OfKind(target, kind);
  if (registry_.HasDevice(target, arch, wanted, clock_.Now()) ||
      (!nearest_arch.empty() && nearest_arch != arch &&
       registry_.HasDevice(target, nearest_arch, wanted, clock_.Now())))
    return absl::OkStatus();
  return NoDevice(target, arch, nearest_arch, kind);
}

std::set<std::string> Dispatcher::KnownKinds(v1::Target target) const {
  std::set<std::string> kinds = registry_.DeviceNames(target);
  absl::StatusOr<std::vector<DeviceRecord>> known = store_.Devices();
  if (!known.ok()) {
    spdlog::error("kinds of devices of earlier processes are not known: {}", known.status().ToString());
    return kinds;
  }
  for (const DeviceRecord& record : *known) {
    v1::DeviceDescription device;
    if (device.ParseFromString(record.description) &&
        (target == v1::TARGET_AUTO || device.target() == target))
      kinds.insert(device.name());
  }
  return kinds;
}

absl::StatusOr<std::string> Dispatcher::FindKind(v1::Target target, const std::string& wanted) const {
  const std::set<std::string> kinds = KnownKinds(target);
  if (kinds.empty() || options_.only_worker_is_here) return wanted;
  std::vector<std::string> found;
  for (const std::string& kind : kinds) {
    if (absl::EqualsIgnoreCase(kind, wanted)) return kind;
    if (IsCalled(kind, wanted)) found.push_back(kind);
  }
  if (found.size() == 1) return found[0];
  return absl::InvalidArgumentError(found.empty()
                                        ? absl::StrCat("no ", Kind(target, ""), " of the farm is called ",
                                                       wanted, "; there are: ", absl::StrJoin(kinds, ", "))
                                        : absl::StrCat(wanted, " may be ", absl::StrJoin(found, " or ")));
}

absl::StatusOr<v1::DeviceDescription> Dispatcher::ChooseDevice(
    v1::Target target, const std::string& arch, std::chrono::milliseconds patience, CancellationToken token,
    const std::string& job, const std::string& nearest_arch, const std::string& kind) {
  Gate::Pass pass(*gate_);
  if (!pass) return Stopped();
  std::string earlier;  // the device that the job has used, which may still be reconnecting
  std::string user;
  if (!job.empty()) {
    FUSION_ASSIGN_OR_RETURN(std::string bound, store_.JobDevice(job));
    earlier = std::move(bound);
    FUSION_ASSIGN_OR_RETURN(JobRecord record, store_.GetJob(job));
    user = std::move(record.user);
    std::lock_guard<std::mutex> lock(mutex_);
    device_jobs_.Release(job);
    if (auto lost = lost_devices_.find(job); lost != lost_devices_.end() && lost->second.contains(earlier))
      earlier.clear();
  }
  const CancellationToken::Registration registration = token.OnCancel([this] { registry_.Interrupt(); });
  const auto deadline = std::chrono::steady_clock::now() + Patience(patience);
  while (true) {
    const int64_t version = registry_.version();
    if (stopped()) return Stopped();
    if (token.cancelled()) return absl::CancelledError("cancelled while waiting for a device");
    std::vector<v1::DeviceDescription> devices = Devices(target, arch, nearest_arch, kind);
    const auto now = std::chrono::steady_clock::now();
    for (v1::DeviceDescription& device : devices) {
      if (earlier.empty() || device.uuid() != earlier) continue;
      std::lock_guard<std::mutex> lock(mutex_);
      device_jobs_.Bind(job, user, earlier);
      return std::move(device);
    }
    // Its timings would begin anew on another one.
    const bool earlier_may_return = !earlier.empty() && WorkersMayReturn() &&
                                    !registry_.DeviceIsLost(earlier, clock_.Now(), options_.out_patience);
    if (!devices.empty() && !earlier_may_return) {
      // The protocol names targets in the order in which they are taken where any will do.
      const v1::Target first =
          std::min_element(devices.begin(), devices.end(), [](const auto& a, const auto& b) {
            return a.target() < b.target();
          })->target();
      std::erase_if(devices,
                    [first](const v1::DeviceDescription& device) { return device.target() != first; });
      const auto fastest = std::max_element(devices.begin(), devices.end(), [](const auto& a, const auto& b) {
        return a.copy_bytes_per_second() < b.copy_bytes_per_second();
      });
      // Two devices of one name differ by chance alone.
      const std::string name = fastest->name();
      std::erase_if(devices, [&](const v1::DeviceDescription& device) { return device.name() != name; });
      std::lock_guard<std::mutex> lock(mutex_);
      return LeastUsed(devices, job, user);
    }
    if (devices.empty() && NoDeviceWillCome(target, arch, nearest_arch, kind))
      return absl::UnavailableError(absl::StrCat("this machine has no ", Kind(target, arch, kind),
                                                 "; its worker: ", registry_.Describe(clock_.Now())));
    if (now >= deadline && earlier_may_return)
      return absl::UnavailableError(
          absl::StrCat("the worker with the job's device, ", earlier,
                       ", has not come back yet; connected: ", registry_.Describe(clock_.Now())));
    if (now >= deadline) return NoDevice(target, arch, nearest_arch, kind);
    // Time alone can change whether another device will do.
    const auto longest =
        earlier_may_return ? std::min(deadline, now + std::chrono::milliseconds(500)) : deadline;
    registry_.WaitForChange(version, std::chrono::duration_cast<std::chrono::milliseconds>(longest - now) +
                                         std::chrono::milliseconds(1));
  }
}

}  // namespace fusion
