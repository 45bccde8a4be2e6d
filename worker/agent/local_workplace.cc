#include "worker/agent/local_workplace.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "worker/agent/assignment_scope.h"
#include "worker/build/host_builder.h"
#include "worker/measure/processors.h"

namespace fusion {
namespace {

constexpr std::chrono::milliseconds kLongestProbeDelay{300000};
// A library of a candidate may stay loaded when it has been closed, as one does in which a thread keeps
// something until it ends: a runner for the host is renewed before these take much memory.
constexpr int kMostTimingsOfHostRunner = 250;

SandboxPolicy HostCodePolicy() {
  SandboxPolicy policy;
  policy.kind = SandboxKind::kHostCode;
  return policy;
}

// Why the device does not work; null: it does.
const v1::DeviceProblem* ProblemOf(const v1::DescribeReply& reply, const v1::DeviceDescription& device) {
  for (const v1::DeviceProblem& problem : reply.problems())
    if (problem.device_uuid() == device.uuid()) return &problem;
  return nullptr;
}

// One that works.
bool HasGpu(const absl::StatusOr<v1::DescribeReply>& reply) {
  return reply.ok() && std::any_of(reply->devices().begin(), reply->devices().end(), [&](const auto& device) {
           return device.target() == v1::CUDA && ProblemOf(*reply, device) == nullptr;
         });
}

bool HasGpuNodes() { return access("/dev/nvidiactl", F_OK) == 0 || access("/dev/dxg", F_OK) == 0; }

}  // namespace

LocalWorkplace::LocalWorkplace(const WorkplaceOptions& options, BlobTransfer* blobs)
    : blobs_(blobs),
      metrics_(options.metrics),
      build_slots_(options.build_slots > 0 ? options.build_slots : AvailableProcessors()),
      first_probe_delay_(options.first_probe_delay),
      build_threads_(build_slots_) {}

LocalWorkplace::~LocalWorkplace() {
  ending_.request_stop();
  build_threads_.join();
  for (auto& [uuid, lane] : lanes_) lane->thread.join();
  for (auto& [uuid, lane] : lanes_) lane->pool.reset();  // waits for the gate
}

absl::StatusOr<std::unique_ptr<LocalWorkplace>> LocalWorkplace::Open(const WorkplaceOptions& wanted,
                                                                     BlobTransfer* blobs) {
  WorkplaceOptions options = wanted;
  std::unique_ptr<LocalWorkplace> workplace(new LocalWorkplace(options, blobs));
  std::string why_not;
  const bool host_refused =
      options.host && !options.allow_unconfined_host_code &&
      !ConfinesHostCode(HostCodePolicy(), options.offer.value_or(MachineOffer::Get()), &why_not);
  if (host_refused) {
    options.host = false;
    workplace->Note(
        absl::StrCat("the host is not offered as a device, since native code of candidates could not "
                     "be confined: ",
                     why_not, "; --allow-unconfined-host-code offers it all the same"));
  }
  // NVRTC runs inside a process, which a hostile source could hang or crash: it gets one of its own. The
  // system's compiler is one. Building for the host runs nothing of what is built.
  if (options.cuda) {
    auto builder = IsolatedBuilder::Create(v1::CUDA, options.runner_program);
    if (builder.ok()) workplace->builders_[v1::CUDA] = *std::move(builder);
    if (!builder.ok()) workplace->Note(builder.status().message());
  }
  if (wanted.host) {
    auto builder = MakeBuilder(v1::HOST);
    if (builder.ok()) workplace->builders_[v1::HOST] = *std::move(builder);
    if (!builder.ok()) workplace->Note(builder.status().message());
  }
  std::unique_ptr<RunnerProcess> runner;
  absl::StatusOr<v1::DescribeReply> described = v1::DescribeReply();
  if (options.devices && (options.cuda || options.host)) described = workplace->Describe(options, &runner);
  if (!described.ok()) return described.status();
  for (const std::string& text : described->notes()) workplace->Note(text);
  std::vector<std::pair<Lane*, std::string>> out;  // that do not work, and why
  for (const v1::DeviceDescription& device : described->devices()) {
    auto lane = std::make_unique<Lane>();
    lane->device = device;
    lane->copy_bytes_per_second = device.copy_bytes_per_second();
    SandboxPolicy policy = workplace->device_policy_;
    policy.device_uuid = device.uuid();
    if (device.target() == v1::HOST) policy = HostCodePolicy();
    // The runner that described a device has it open already; where both kinds were asked for it is of
    // neither's confinement.
    lane->runner = runner != nullptr && described->devices_size() == 1 && described->problems().empty() &&
                           options.cuda != options.host
                       ? std::move(runner)
                       : std::make_unique<RunnerProcess>(options.runner_program, policy);
    workplace->MakePool(lane.get(), policy, options);
    Lane* const made = lane.get();
    workplace->lanes_[device.uuid()] = std::move(lane);
    workplace->devices_.push_back(device);
    const v1::DeviceProblem* problem = ProblemOf(*described, device);
    if (options.metrics != nullptr)
      options.metrics->device_healthy.With({device.uuid()}).Set(problem == nullptr ? 1 : 0);
    if (problem == nullptr) continue;
    made->has_figures = false;
    out.emplace_back(made, problem->reason());
  }
  for (const auto& [target, builder] : workplace->builders_) {
    v1::BuildCapability& build = workplace->builds_.emplace_back();
    build.set_target(target);
    if (target == v1::HOST) build.set_arch(HostArch());
  }
  if (workplace->devices_.empty() && workplace->builders_.empty()) {
    std::string reasons;
    for (const std::string& text : workplace->notes_) absl::StrAppend(&reasons, "; ", text);
    return absl::NotFoundError(absl::StrCat("neither a device nor a compiler", reasons));
  }
  workplace->DescribeConfinement(wanted, host_refused);
  for (const auto& [lane, reason] : out) workplace->TakeOut(lane, reason, workplace->first_probe_delay_);
  return workplace;
}

void LocalWorkplace::MakePool(Lane* lane, const SandboxPolicy& policy, const WorkplaceOptions& options) {
  if (options.spare_runners <= 0) return;
  RunnerPoolOptions pool;
  pool.program = options.runner_program;
  pool.policy = policy;
  pool.device_uuid = lane->device.uuid();
  pool.spares = options.spare_runners;
  // The pass before the device, as timings take them.
  pool.with_device = [this, lane](std::stop_token stop, const std::function<void()>& use) {
    const HostGate::Pass pass = gate_.EnterShared(stop);
    if (!pass) return;
    const std::lock_guard device(lane->device_mutex);
    use();
  };
  if (lane->device.target() != v1::HOST)
    pool.beside_timings = [this](std::stop_token stop, const std::function<void()>& use) {
      if (const HostGate::Pass pass = gate_.EnterShared(stop)) use();
    };
  if (metrics_ != nullptr) {
    auto& spares = metrics_->spare_runners.With({lane->device.uuid()});
    pool.changed = [&spares](int ready) { spares.Set(ready); };
  }
  lane->pool = std::make_unique<RunnerPool>(std::move(pool));
  lane->runner->TakeSparesFrom([pool = lane->pool.get()] { return pool->Take(); });
}

absl::StatusOr<v1::DescribeReply> LocalWorkplace::Describe(const WorkplaceOptions& options,
                                                           std::unique_ptr<RunnerProcess>* runner) {
  const auto describe = [&](v1::Target target, const SandboxPolicy& policy) {
    *runner = std::make_unique<RunnerProcess>(options.runner_program, policy);
    return (*runner)->Describe(target);
  };
  if (!options.cuda) return describe(v1::HOST, HostCodePolicy());
  const v1::Target target = options.host ? v1::TARGET_AUTO : v1::CUDA;
  absl::StatusOr<v1::DescribeReply> described = describe(target, device_policy_);
  if (absl::IsAborted(described.status())) {
    if (absl::StatusOr<v1::DescribeReply> gpus = DescribeOneByOne(options); gpus.ok()) {
      if (options.host) {
        FUSION_ASSIGN_OR_RETURN(v1::DescribeReply host, describe(v1::HOST, HostCodePolicy()));
        gpus->MergeFrom(host);
      }
      runner->reset();
      described = *std::move(gpus);
    }
  }
  // A driver may need what we do not know of: a GPU that is there is not lost to that. The filter stays.
  if (!HasGpu(described) && !absl::IsNotFound(described.status()) &&
      options.gpu_nodes.value_or(HasGpuNodes())) {
    for (const bool landlock : {true, false}) {
      SandboxPolicy weaker;
      weaker.use_bubblewrap = false;
      weaker.use_landlock = landlock;
      absl::StatusOr<v1::DescribeReply> again = describe(target, weaker);
      if (!HasGpu(again)) continue;
      // Or it was sick, and has come back: that is no reason to confine less. One runner at a time has it.
      runner->reset();
      if (absl::StatusOr<v1::DescribeReply> back = describe(target, device_policy_); HasGpu(back))
        return back;
      runner->reset();
      again = describe(target, weaker);
      if (!HasGpu(again)) continue;
      Note(absl::StrCat("the CUDA driver does not work with ",
                        ConfinementText(device_policy_, MachineOffer::Get()), "; runners for GPUs have ",
                        ConfinementText(weaker, MachineOffer::Get())));
      device_policy_ = weaker;
      return again;
    }
  }
  if (!described.ok() && options.host && absl::IsAborted(described.status())) {
    // A driver that kills its process must not take the host away too.
    Note(absl::StrCat("CUDA devices could not be described: ", described.status().message()));
    return describe(v1::HOST, HostCodePolicy());
  }
  return described;
}

absl::StatusOr<v1::DescribeReply> LocalWorkplace::DescribeOneByOne(const WorkplaceOptions& options) {
  absl::StatusOr<v1::DescribeReply> outline = RunnerProcess(options.runner_program, device_policy_).Outline();
  if (!outline.ok()) return outline.status();
  if (outline->devices().empty()) return absl::NotFoundError("the CUDA driver sees no device");
  for (v1::DeviceDescription& device : *outline->mutable_devices()) {
    SandboxPolicy policy = device_policy_;
    policy.device_uuid = device.uuid();
    absl::StatusOr<v1::DeviceDescription> described =
        RunnerProcess(options.runner_program, policy).DescribeDevice(device.uuid());
    if (described.ok()) {
      device = *std::move(described);
      continue;
    }
    v1::DeviceProblem* problem = outline->add_problems();
    problem->set_device_uuid(device.uuid());
    problem->set_reason(std::string(described.status().message()));
  }
  return outline;
}

std::vector<v1::DeviceDescription> LocalWorkplace::devices() const {
  const std::lock_guard lock(devices_mutex_);
  return devices_;
}

void LocalWorkplace::DescribeConfinement(const WorkplaceOptions& options, bool host_refused) {
  const MachineOffer& offer = MachineOffer::Get();
  confinement_.set_runner(ConfinementText(device_policy_, offer));
  if (options.host)
    confinement_.set_host_code(host_refused ? "refused" : ConfinementText(HostCodePolicy(), offer));
  std::set<std::string> compilers;
  for (const auto& [target, builder] : builders_) compilers.insert(builder->Confinement());
  confinement_.set_compiler(absl::StrJoin(compilers, "; "));
}

void LocalWorkplace::Start(const v1::Assignment& assignment, std::stop_token stop,
                           std::function<void(v1::TaskReport)> done) {
  v1::TaskReport report;
  report.set_task(assignment.task());
  report.set_fence(assignment.fence());
  if (assignment.has_build()) {
    boost::asio::post(build_threads_, [this, report, stop, task = assignment.build(),
                                       trace = assignment.traceparent(), done]() mutable {
      const AssignmentScope scope(report.task(), trace);
      Build(task, stop, &report);
      done(std::move(report));
    });
    return;
  }
  const auto lane = lanes_.find(assignment.time().device_uuid());
  if (assignment.has_time() && lane != lanes_.end()) {
    boost::asio::post(lane->second->thread,
                      [this, report, stop, lane = lane->second.get(), task = assignment.time(),
                       trace = assignment.traceparent(), done]() mutable {
                        const AssignmentScope scope(report.task(), trace);
                        Time(lane, task, stop, &report);
                        done(std::move(report));
                      });
    return;
  }
  report.set_failure(assignment.has_time()
                         ? absl::StrCat("this worker has no device ", assignment.time().device_uuid())
                         : "an assignment without work");
  boost::asio::post(build_threads_, [report, done]() mutable { done(std::move(report)); });
}

void LocalWorkplace::Build(const v1::BuildTask& task, std::stop_token stop, v1::TaskReport* report) {
  const auto builder = builders_.find(task.target());
  if (builder == builders_.end()) {
    report->set_failure(absl::StrCat("this worker has no compiler for ", v1::Target_Name(task.target())));
    return;
  }
  BuildOutput output;
  {
    const HostGate::Pass pass = gate_.EnterShared(stop);
    if (pass) output = builder->second->Build(task, stop);
  }
  if (stop.stop_requested()) {
    report->set_failure("stopped");
    return;
  }
  if (!output.has_outcome()) {
    spdlog::warn("a build failed, which may not be its source's fault: {}", output.result.log());
    report->set_failure(absl::StrCat("the build failed: ", output.result.log()));
    return;
  }
  if (output.result.outcome() == v1::OK) {
    absl::Status written = blobs_->Write(output.result.binary(), output.binary, stop);
    if (!written.ok()) {
      report->set_failure(absl::StrCat("the device code could not be stored: ", written.message()));
      return;
    }
  }
  *report->mutable_build() = std::move(output.result);
}

void LocalWorkplace::Time(Lane* lane, const v1::TimeTask& task, std::stop_token stop,
                          v1::TaskReport* report) {
  if (health_.IsOut(lane->device.uuid())) {
    report->set_failure(absl::StrCat("the device ", lane->device.uuid(), " is taken out"));
    return;
  }
  if (stop.stop_requested()) {  // while it waited for the one before; the runner is not to be ended for that
    report->set_failure("stopped");
    return;
  }
  TimeSpent spent;
  auto since = std::chrono::steady_clock::now();
  const auto lap = [&] {
    const auto before = std::exchange(since, std::chrono::steady_clock::now());
    return std::chrono::duration<double>(since - before).count();
  };
  if (lane->last_ended != std::chrono::steady_clock::time_point())
    spent["idle"] = std::chrono::duration<double>(since - lane->last_ended).count();
  // Fetched before the gate: waiting for the server must not keep others from working.
  for (const v1::Program* program : {&task.session().reference(), &task.session().unfused()})
    for (const v1::Launch& launch : program->launches()) blobs_->Prefetch(launch.binary(), stop);
  for (const v1::Program& program : task.programs())
    for (const v1::Launch& launch : program.launches()) blobs_->Prefetch(launch.binary(), stop);
  for (const v1::Buffer& input : task.session().inputs())
    if (input.values().kind() == v1::InputValues::FILE) blobs_->Prefetch(input.values().blob(), stop);
  spent["fetch"] = lap();
  const HostGate::Pass pass =
      lane->device.target() == v1::HOST ? gate_.EnterAlone(stop) : gate_.EnterShared(stop);
  if (!pass) {
    report->set_failure("stopped");
    return;
  }
  const std::lock_guard device(lane->device_mutex);
  spent["turn"] = lap();
  if (lane->device.target() == v1::HOST && lane->timings_of_runner++ == kMostTimingsOfHostRunner) {
    lane->runner->End();
    lane->runner->Open(lane->device.uuid(), /*beside_timings=*/false, stop).IgnoreError();
    lane->timings_of_runner = 1;
  }
  const int starts = std::max(1, lane->runner->starts());
  TimeTaskOptions options;
  options.copy_bytes_per_second = lane->copy_bytes_per_second;
  options.stop = stop;
  options.spent = &spent;
  if (nearly_done_) options.nearly_done = [&] { nearly_done_(report->task(), report->fence()); };
  absl::StatusOr<v1::TimeResult> result = ExecuteTimeTask(
      *lane->runner, task, [&](const std::string& digest) { return blobs_->Read(digest, stop); }, options);
  lane->last_ended = std::chrono::steady_clock::now();
  if (metrics_ != nullptr) {
    metrics_->runner_restarts.With({lane->device.uuid()}).Add(std::max(0, lane->runner->starts() - starts));
    metrics_->device_healthy.With({lane->device.uuid()}).Set(lane->runner->needs_probe() ? 0 : 1);
    for (const auto& [part, seconds] : spent)
      metrics_->timing_seconds.With({lane->device.uuid(), part}).Add(std::max(0.0, seconds));
  }
  if (result.ok()) {
    *report->mutable_time() = *std::move(result);
  } else {
    report->set_failure(std::string(result.status().message()));
    if (absl::IsFailedPrecondition(result.status()) && lane->runner->needs_probe())
      TakeOut(lane, std::string(result.status().message()), first_probe_delay_);
  }
}

void LocalWorkplace::TakeOut(Lane* lane, const std::string& reason, std::chrono::milliseconds delay) {
  const std::string& uuid = lane->device.uuid();
  spdlog::warn("device {} is taken out, and tried again in {} s: {}", uuid, 1e-3 * delay.count(), reason);
  health_.TakeOut(uuid, reason);
  boost::asio::post(lane->thread, [this, lane, delay] {
    std::mutex mutex;
    std::condition_variable_any ended;
    std::unique_lock lock(mutex);
    if (ended.wait_for(lock, ending_.get_token(), delay, [] { return false; }) || ending_.stop_requested())
      return;
    const absl::Status probed = Probe(lane);
    if (!probed.ok())
      return TakeOut(lane, std::string(probed.message()), std::min(2 * delay, kLongestProbeDelay));
    if (metrics_ != nullptr) metrics_->device_healthy.With({lane->device.uuid()}).Set(1);
    spdlog::info("device {} is sound again", lane->device.uuid());
    health_.BringBack(lane->device.uuid());
  });
}

absl::Status LocalWorkplace::Probe(Lane* lane) {
  const std::string& uuid = lane->device.uuid();
  const std::lock_guard device(lane->device_mutex);
  absl::Status probed = lane->runner->Probe(uuid);
  if (probed.ok() && !lane->has_figures) {
    absl::StatusOr<v1::DeviceDescription> described = lane->runner->DescribeDevice(uuid);
    probed = described.status();
    if (described.ok()) {
      lane->has_figures = true;
      lane->copy_bytes_per_second = described->copy_bytes_per_second();
      const std::lock_guard lock(devices_mutex_);
      for (v1::DeviceDescription& known : devices_)
        if (known.uuid() == uuid) known = *std::move(described);
    }
  }
  // A driver keeps to what it found when the process began.
  if (!probed.ok()) lane->runner->End();
  return probed;
}

}  // namespace fusion
