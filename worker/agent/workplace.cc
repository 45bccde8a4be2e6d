#include "worker/agent/workplace.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "library/monitor/log.h"
#include "worker/measure/time_task.h"

namespace fusion {
namespace {

int Slots(int wanted) {
  return wanted > 0 ? wanted : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace

Workplace::Workplace(const WorkplaceOptions& options, BlobTransfer* blobs)
    : blobs_(blobs), metrics_(options.metrics), build_slots_(Slots(options.build_slots)), build_threads_(build_slots_) {}

Workplace::~Workplace() {
  build_threads_.join();
  for (auto& [uuid, lane] : lanes_) lane->thread.join();
}

absl::StatusOr<std::unique_ptr<Workplace>> Workplace::Open(const WorkplaceOptions& options,
                                                           BlobTransfer* blobs) {
  std::unique_ptr<Workplace> workplace(new Workplace(options, blobs));
  auto note = [&](absl::string_view message) { workplace->notes_.emplace_back(message); };
  // NVRTC runs inside a process, which a hostile source could hang or crash: it gets one of its own. The
  // system's compiler is one.
  if (options.cuda) {
    auto builder = IsolatedBuilder::Create(v1::CUDA, options.runner_program);
    if (builder.ok()) workplace->builders_[v1::CUDA] = *std::move(builder);
    if (!builder.ok()) note(builder.status().message());
  }
  if (options.host) {
    auto builder = MakeBuilder(v1::HOST);
    if (builder.ok()) workplace->builders_[v1::HOST] = *std::move(builder);
    if (!builder.ok()) note(builder.status().message());
  }
  auto runner = std::make_unique<RunnerProcess>(options.runner_program);
  const v1::Target target = options.cuda && options.host ? v1::TARGET_AUTO
                            : options.cuda               ? v1::CUDA
                                                         : v1::HOST;
  absl::StatusOr<v1::DescribeReply> described = runner->Describe(target);
  if (!described.ok() && options.cuda && options.host && absl::IsAborted(described.status())) {
    // A driver that kills its process must not take the host away too.
    note(absl::StrCat("CUDA devices could not be described: ", described.status().message()));
    described = runner->Describe(v1::HOST);
  }
  if (!described.ok()) return described.status();
  for (const std::string& text : described->notes()) note(text);
  for (const v1::DeviceDescription& device : described->devices()) {
    auto lane = std::make_unique<Lane>();
    lane->device = device;
    // The runner that described a device has it open already.
    lane->runner = runner != nullptr && described->devices_size() == 1
                       ? std::move(runner)
                       : std::make_unique<RunnerProcess>(options.runner_program);
    workplace->lanes_[device.uuid()] = std::move(lane);
    workplace->devices_.push_back(device);
    if (options.metrics != nullptr) options.metrics->device_healthy.With({device.uuid()}).Set(1);
  }
  if (workplace->devices_.empty() && workplace->builders_.empty()) {
    std::string reasons;
    for (const std::string& text : workplace->notes_) absl::StrAppend(&reasons, "; ", text);
    return absl::NotFoundError(absl::StrCat("neither a device nor a compiler", reasons));
  }
  return workplace;
}

void Workplace::Start(const v1::Assignment& assignment, std::stop_token stop,
                      std::function<void(v1::TaskReport)> done) {
  v1::TaskReport report;
  report.set_task(assignment.task());
  report.set_fence(assignment.fence());
  if (assignment.has_build()) {
    boost::asio::post(build_threads_, [this, report, stop, task = assignment.build(), done]() mutable {
      const LogScope scope("task", report.task());
      Build(task, stop, &report);
      done(std::move(report));
    });
    return;
  }
  const auto lane = lanes_.find(assignment.time().device_uuid());
  if (assignment.has_time() && lane != lanes_.end()) {
    boost::asio::post(lane->second->thread, [this, report, stop, lane = lane->second.get(),
                                             task = assignment.time(), done]() mutable {
      const LogScope scope("task", report.task());
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

void Workplace::Build(const v1::BuildTask& task, std::stop_token stop, v1::TaskReport* report) {
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
  if (output.result.outcome() == v1::OK) {
    absl::Status written = blobs_->Write(output.result.binary(), output.binary, stop);
    if (!written.ok()) {
      report->set_failure(absl::StrCat("the device code could not be stored: ", written.message()));
      return;
    }
  }
  *report->mutable_build() = std::move(output.result);
}

void Workplace::Time(Lane* lane, const v1::TimeTask& task, std::stop_token stop, v1::TaskReport* report) {
  // Fetched before the gate: waiting for the server must not keep others from working.
  for (const v1::Program* program : {&task.session().reference(), &task.session().unfused()})
    for (const v1::Launch& launch : program->launches()) blobs_->Read(launch.binary(), stop).IgnoreError();
  for (const v1::Program& program : task.programs())
    for (const v1::Launch& launch : program.launches()) blobs_->Read(launch.binary(), stop).IgnoreError();
  const HostGate::Pass pass =
      lane->device.target() == v1::HOST ? gate_.EnterAlone(stop) : gate_.EnterShared(stop);
  if (!pass) {
    report->set_failure("stopped");
    return;
  }
  const int starts = std::max(1, lane->runner->starts());
  TimeTaskOptions options;
  options.copy_bytes_per_second = lane->device.copy_bytes_per_second();
  options.stop = stop;
  absl::StatusOr<v1::TimeResult> result = ExecuteTimeTask(
      *lane->runner, task, [&](const std::string& digest) { return blobs_->Read(digest, stop); }, options);
  if (metrics_ != nullptr) {
    metrics_->runner_restarts.With({lane->device.uuid()}).Add(std::max(0, lane->runner->starts() - starts));
    metrics_->device_healthy.With({lane->device.uuid()}).Set(lane->runner->needs_probe() ? 0 : 1);
  }
  if (result.ok()) {
    *report->mutable_time() = *std::move(result);
  } else {
    report->set_failure(std::string(result.status().message()));
  }
}

}  // namespace fusion
