#include "server/dispatch/dispatcher.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/status_macros.h"

namespace fusion {
namespace {

constexpr int kTicksBetweenWaking = 4;

}  // namespace

Dispatcher::Dispatcher(Store& store, boost::asio::any_io_executor executor, const Clock& clock,
                       const DispatcherOptions& options)
    : store_(store),
      clock_(clock),
      options_(options),
      registry_(options.connected_for),
      queue_(store, clock, board_, options.lease, options.resume_tasks),
      synchronizer_(store, clock, options, registry_, queue_, executor),
      expiry_timer_(executor) {}

Dispatcher::~Dispatcher() { Stop(); }

absl::Status Dispatcher::Start() {
  FUSION_ASSIGN_OR_RETURN(std::vector<TaskRecord> orphans, store_.CancelOrphanTasks(clock_.Now()));
  FUSION_ASSIGN_OR_RETURN(int64_t adopted, store_.AdoptRunning(clock_.Now(), options_.restart_grace));
  FUSION_RETURN_IF_ERROR(queue_.Start());
  absl::StatusOr<std::map<std::string, std::string>> drained = store_.DrainedWorkers();
  if (!drained.ok()) return drained.status();
  registry_.RestoreDrained(*std::move(drained));
  absl::StatusOr<std::map<std::string, std::vector<std::string>>> processes = store_.WorkerProcesses();
  if (!processes.ok()) return processes.status();
  registry_.RestoreProcesses(*processes);
  if (!options_.only_worker_is_here) {
    FUSION_ASSIGN_OR_RETURN(std::vector<JobRecord> unfinished, store_.UnfinishedJobs());
    if (!unfinished.empty()) workers_may_return_until_ = clock_.Now() + options_.restart_grace;
  }
  if (adopted > 0) spdlog::info("{} tasks are with workers; waiting for these to reconnect", adopted);
  ArmExpiryTimer();
  return absl::OkStatus();
}

std::chrono::milliseconds Dispatcher::Patience(std::chrono::milliseconds wanted) const {
  if (wanted.count() <= 0) return wanted;
  return std::max(wanted,
                  std::chrono::ceil<std::chrono::milliseconds>(workers_may_return_until_ - clock_.Now()));
}

void Dispatcher::Stop() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (std::exchange(stopped_, true)) return;
    expiry_timer_.cancel();
  }
  registry_.Interrupt();
  board_.InterruptAll();
  synchronizer_.Close();
  // Blocking calls and the timer hold passes: when the gate is closed, none of them uses this object any
  // more.
  gate_->Close();
}

bool Dispatcher::stopped() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return stopped_;
}

void Dispatcher::ArmExpiryTimer() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (stopped_) return;
  expiry_timer_.expires_after(options_.expiry_period);
  expiry_timer_.async_wait([this, gate = gate_](const boost::system::error_code& error) {
    Gate::Pass pass(*gate);
    if (!pass || error) return;
    Tick();
    ArmExpiryTimer();
  });
}

void Dispatcher::Tick() {
  std::set<std::string> lost_workers;
  absl::StatusOr<bool> news = queue_.ExpireLeases(&lost_workers);
  for (const std::string& worker : registry_.TakeSilentSince(clock_.Now() - options_.broken_grace)) {
    absl::StatusOr<bool> more = queue_.LoseTasksOf(worker);
    if (!more.ok()) spdlog::error("worker {}: {}", worker, more.status().ToString());
    if (news.ok() && more.value_or(false)) *news = true;
    lost_workers.insert(worker);
  }
  for (const std::string& worker : lost_workers) registry_.Lose(worker);
  if (!news.ok()) spdlog::error("leases not looked through: {}", news.status().ToString());
  if (absl::Status status = WorkersMayReturn() ? absl::OkStatus() : queue_.ExpireQueued(); !status.ok())
    spdlog::error("tasks that have waited too long are not given up: {}", status.ToString());
  if (news.value_or(false)) synchronizer_.WakeForTasks();
  // A task that its last worker must not have again may wait beside idle workers that were not woken for it.
  if (++ticks_ % kTicksBetweenWaking == 0) synchronizer_.WakeAllForTasks();
}

void Dispatcher::CallBroke(const std::string& worker, int64_t call) {
  Gate::Pass pass(*gate_);
  if (pass) registry_.CallBroke(worker, call, clock_.Now());
}

void Dispatcher::Synchronize(v1::SynchronizeRequest request,
                             std::function<void(v1::SynchronizeResponse)> done, int64_t call) {
  Gate::Pass pass(*gate_);
  if (!pass) {
    v1::SynchronizeResponse stopping;
    stopping.set_next_contact_seconds(1.0);
    done(std::move(stopping));
    return;
  }
  synchronizer_.Synchronize(std::move(request), std::move(done), call);
}

absl::Status Dispatcher::CancelJob(const std::string& job) {
  FUSION_ASSIGN_OR_RETURN(std::vector<std::string> holders, queue_.CancelJob(job));
  for (const std::string& worker : holders) synchronizer_.Wake(worker);
  return absl::OkStatus();
}

void Dispatcher::JobEnded(const std::string& job) {
  std::optional<DeviceJobs::Job> had;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    lost_devices_.erase(job);
    had = device_jobs_.Release(job);
  }
  Gate::Pass pass(*gate_);
  if (pass && had.has_value() && queue_.LetGo(had->uuid, had->user)) synchronizer_.WakeForTasks();
}

std::vector<v1::Worker> Dispatcher::Workers() const { return registry_.Workers(clock_.Now()); }

absl::StatusOr<v1::Worker> Dispatcher::Drain(const std::string& name) {
  FUSION_ASSIGN_OR_RETURN(std::string instance, registry_.Drain(name));
  const std::string worker = name.rfind("workers/", 0) == 0 ? name.substr(8) : name;
  absl::Status stored = store_.SetDrained(worker, instance);
  if (!stored.ok()) return stored;
  synchronizer_.Wake(worker);
  for (v1::Worker& known : Workers()) {
    if (known.name() == "workers/" + worker) return std::move(known);
  }
  return absl::InternalError("a worker has vanished from the registry");
}

}  // namespace fusion
