#include "server/dispatch/synchronizer.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace fusion {
namespace {

// An assignment that a process was sent but does not list was lost on the way, and is sent again; so it is
// when a call that was made before the answer to another came lists less. (Workers of earlier versions cancel
// a held call when they have news, so many answers are lost where many short builds end.) One that is still
// not listed after so many times is not wanted there: its lease ends, and another worker gets it.
constexpr int kMostResends = 200;

// Seconds until a worker whose call was not held should call again.
constexpr double kPollSeconds = 1.0;

bool IsHeld(const v1::TaskReport& report) {
  return report.state_case() == v1::TaskReport::kRunning ||
         report.state_case() == v1::TaskReport::STATE_NOT_SET;
}

}  // namespace

Synchronizer::Synchronizer(Store& store, const Clock& clock, const DispatcherOptions& options,
                           WorkerRegistry& registry, TaskQueue& queue, boost::asio::any_io_executor executor)
    : store_(store),
      clock_(clock),
      options_(options),
      registry_(registry),
      queue_(queue),
      polls_(std::move(executor),
             [this](const v1::SynchronizeRequest& request, v1::SynchronizeResponse& response) {
               return Look(request, response);
             }) {}

void Synchronizer::Synchronize(v1::SynchronizeRequest request, LongPolls::Done done, int64_t call) {
  v1::SynchronizeResponse response;
  response.set_next_contact_seconds(request.wait_seconds() > 0 ? 0 : kPollSeconds);
  if (request.worker().empty() || request.instance().empty()) {
    spdlog::warn("a worker called without a name or an instance; it gets no tasks");
    response.set_next_contact_seconds(options_.longest_wait.count() / 1000.0);
    done(std::move(response));
    return;
  }
  const WorkerRegistry::Contact contact = registry_.Touch(request, clock_.Now(), call);
  if (contact == WorkerRegistry::Contact::kReplaced) {
    spdlog::warn("worker {}: process {} has been replaced by a newer one; it is told to stop",
                 request.worker(), request.instance());
    for (const v1::TaskReport& report : request.tasks()) {
      if (IsHeld(report)) {
        response.add_cancelled(report.task());
      } else {
        response.add_accepted(report.task());
      }
    }
    response.set_drain(true);
    response.set_replaced(true);
    response.set_next_contact_seconds(options_.longest_wait.count() / 1000.0);
    done(std::move(response));
    return;
  }
  polls_.GiveUpOlder(request.worker(), call);  // and not only once what this one brings is on the disk
  Accept(request, contact, response);
  response.set_drain(registry_.Draining(request.worker()));

  bool holds_tasks = false;
  for (const v1::TaskReport& report : request.tasks()) holds_tasks = holds_tasks || IsHeld(report);
  auto wait = std::chrono::milliseconds(0);
  // The worker is told at once what was accepted.
  if (response.accepted_size() == 0 && request.wait_seconds() > 0) {
    const std::chrono::milliseconds longest = holds_tasks ? options_.contact : options_.longest_wait;
    wait = request.wait_seconds() * 1000 < static_cast<double>(longest.count())
               ? std::chrono::milliseconds(static_cast<int64_t>(request.wait_seconds() * 1000) + 1)
               : longest;
  }
  std::string worker = request.worker();
  std::string instance = request.instance();
  polls_.Hold(
      std::move(request), std::move(response), wait,
      [this, worker = std::move(worker), instance = std::move(instance),
       done = std::move(done)](v1::SynchronizeResponse answer) {
        registry_.Answered(worker, instance, clock_.Now());
        done(std::move(answer));
      },
      call);
}

void Synchronizer::Accept(const v1::SynchronizeRequest& request, WorkerRegistry::Contact contact,
                          v1::SynchronizeResponse& response) {
  bool news = false;  // for other workers
  if (contact == WorkerRegistry::Contact::kNewInstance) {
    absl::StatusOr<bool> lost = queue_.LoseTasksOfEarlierInstances(request);
    if (!lost.ok()) spdlog::error("worker {}: {}", request.worker(), lost.status().ToString());
    news = lost.value_or(false);
    std::string devices;
    for (const v1::DeviceDescription& device : request.devices()) {
      devices += (devices.empty() ? "" : ", ") + LowerCaseName(device.target()) + " " + device.arch() + " " +
                 device.name();
    }
    spdlog::info("worker {} connected: {}", request.worker(), devices.empty() ? "no device" : devices);
  }
  RememberDevices(request);
  absl::Status renewed = queue_.Renew(request);
  if (!renewed.ok()) spdlog::error("worker {}: leases not renewed: {}", request.worker(), renewed.ToString());
  std::vector<const v1::TaskReport*> finished;
  for (const v1::TaskReport& report : request.tasks())
    if (!IsHeld(report)) finished.push_back(&report);
  const std::vector<absl::StatusOr<TaskQueue::Reported>> reported = queue_.Report(request.worker(), finished);
  for (size_t i = 0; i < finished.size(); ++i) {
    if (!reported[i].ok()) {
      // Not accepted, so the worker keeps it and reports it again.
      spdlog::error("{}: result not stored: {}", finished[i]->task(), reported[i].status().ToString());
      continue;
    }
    response.add_accepted(finished[i]->task());
    news = true;
  }
  if (news) WakeForTasks();
}

void Synchronizer::WakeForTasks() {
  std::vector<ReadyQueue::Waiting> waiting = queue_.Waiting();
  if (waiting.empty()) return;
  polls_.WakeIf([&](const v1::SynchronizeRequest& request) {
    if (waiting.empty() || registry_.Draining(request.worker())) return false;
    bool wanted = false;
    for (TaskKind kind : {TaskKind::kTime, TaskKind::kBuild}) {
      int slots = kind == TaskKind::kTime ? request.free_time_slots() : request.free_build_slots();
      if (slots <= 0) continue;
      const std::vector<Capability> capabilities = CapabilitiesFor(kind, request);
      for (ReadyQueue::Waiting& tasks : waiting) {
        const bool matches =
            tasks.kind == kind &&
            std::any_of(capabilities.begin(), capabilities.end(), [&](const Capability& capability) {
              return Matches(capability, tasks.requirements);
            });
        if (!matches || slots == 0) continue;
        const int taken = std::min(slots, tasks.count);
        slots -= taken;
        tasks.count -= taken;
        wanted = true;
      }
    }
    std::erase_if(waiting, [](const ReadyQueue::Waiting& tasks) { return tasks.count == 0; });
    return wanted;
  });
}

void Synchronizer::WakeAllForTasks() {
  if (!queue_.Waiting().empty()) polls_.WakeAll();
}

bool Synchronizer::Look(const v1::SynchronizeRequest& request, v1::SynchronizeResponse& response) {
  const std::vector<ClaimedTask> held = queue_.HeldBy(request);
  bool news = false;

  std::set<std::pair<std::string, int64_t>> running;
  for (const ClaimedTask& task : held) running.emplace(task.id, task.fence);
  std::set<std::string> listed;
  response.clear_cancelled();
  for (const v1::TaskReport& report : request.tasks()) {
    listed.insert(report.task());
    if (!IsHeld(report) || running.contains({report.task(), report.fence()})) continue;
    response.add_cancelled(report.task());
    news = registry_.FirstCancellation(request.worker(), report) || news;
  }

  int build_slots = std::max(request.free_build_slots(), 0);
  int time_slots = std::max(request.free_time_slots(), 0);
  std::set<std::string> given;  // devices for which it gets one again that it says nothing of
  for (const ClaimedTask& task : held) {
    if (listed.contains(task.id)) continue;
    if (registry_.CountResent(request.worker(), task.id, task.fence) > kMostResends) continue;
    absl::StatusOr<TaskRecord> with_work = store_.GetTask(task.id);
    if (!with_work.ok() || with_work->fence != task.fence || with_work->state != TaskState::kRunning)
      continue;
    absl::StatusOr<v1::Assignment> assignment = queue_.AssignmentOf(*with_work);
    if (!assignment.ok()) continue;
    *response.add_assignments() = *std::move(assignment);
    (task.kind == TaskKind::kBuild ? build_slots : time_slots) -= 1;
    if (const std::string& uuid = with_work->requirements.device_uuid; !uuid.empty()) given.insert(uuid);
    news = true;
  }

  const bool was_draining = response.drain();
  response.set_drain(registry_.Draining(request.worker()));
  if (response.drain()) return news || !was_draining;
  for (TaskKind kind : {TaskKind::kTime, TaskKind::kBuild}) {
    const int slots = kind == TaskKind::kTime ? time_slots : build_slots;
    std::optional<Timestamp> look_again;
    absl::StatusOr<std::vector<v1::Assignment>> assignments =
        queue_.Claim(request, kind, slots, given, &look_again);
    if (look_again.has_value()) polls_.WakeAfter(request.worker(), *look_again - clock_.Now());
    if (!assignments.ok()) {
      spdlog::error("worker {}: no tasks given: {}", request.worker(), assignments.status().ToString());
      continue;
    }
    for (v1::Assignment& assignment : *assignments) *response.add_assignments() = std::move(assignment);
    news = news || !assignments->empty();
  }
  return news;
}

void Synchronizer::RememberDevices(const v1::SynchronizeRequest& request) {
  for (const v1::DeviceDescription& device : request.devices()) {
    // Without figures it has not worked yet: nothing can be predicted for it.
    if (device.uuid().empty() || device.copy_bytes_per_second() <= 0) continue;
    std::string description = device.SerializeAsString();
    {
      std::lock_guard<std::mutex> lock(devices_mutex_);
      std::string& remembered = remembered_devices_[device.uuid()];
      if (remembered == description) continue;
      remembered = description;
    }
    absl::Status stored =
        store_.UpsertDevice(DeviceRecord{device.uuid(), device.name(), description, clock_.Now()});
    if (stored.ok()) continue;
    spdlog::error("device {}: {}", device.uuid(), stored.ToString());
    std::lock_guard<std::mutex> lock(devices_mutex_);
    remembered_devices_.erase(device.uuid());  // it is tried again at the next call
  }
}

}  // namespace fusion
