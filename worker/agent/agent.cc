#include "worker/agent/agent.h"

#include <grpcpp/client_context.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/random_id.h"
#include "base/status_macros.h"
#include "worker/agent/assignment_scope.h"

#ifndef FUSION_VERSION
#define FUSION_VERSION "unknown"
#endif

namespace fusion {
namespace {

// While it holds tasks a worker calls at least so often: three calls in a lease of 15 s.
constexpr double kContactSeconds = 5;
// Beyond the time for which the server may hold a call, until it counts as lost.
constexpr double kCallSlackSeconds = 15;
// Before reporting again what the server did not accept.
constexpr double kUnacceptedSeconds = 0.2;
constexpr double kGiveBackSeconds = 2;
// Calls under way: those that the server has not given up yet for newer ones, and one with what has happened
// since. More are a server that holds on to them.
constexpr int kMostCalls = 8;

WorkplaceOptions WithMetrics(WorkplaceOptions options, WorkerMetrics* metrics) {
  options.metrics = metrics;
  return options;
}

std::chrono::system_clock::time_point InSeconds(double seconds) {
  return std::chrono::system_clock::now() + std::chrono::duration_cast<std::chrono::system_clock::duration>(
                                                std::chrono::duration<double>(seconds));
}

bool IsRefusal(absl::StatusCode code) {
  return code == absl::StatusCode::kUnauthenticated || code == absl::StatusCode::kPermissionDenied;
}

}  // namespace

std::string HostName() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

struct Agent::Call {
  grpc::ClientContext context;
  v1::SynchronizeRequest request;
  v1::SynchronizeResponse response;  // as status, once it has been answered
  grpc::Status status;
  bool answered = false;  // guarded by the agent's mutex, as wanted
  bool wanted = true;     // no newer call has been answered
};

Agent::Agent(AgentOptions options, std::shared_ptr<grpc::Channel> channel)
    : options_(std::move(options)),
      name_(options_.name.empty() ? HostName() : options_.name),
      instance_(RandomHex(2)),
      stub_(v1::WorkerService::NewStub(channel)),
      blobs_(channel, options_.cache_bytes),
      held_([this] { Wake(); }) {}

Agent::~Agent() { Stop(); }

void Agent::Wake() {
  std::lock_guard lock(mutex_);
  news_ = true;
  woken_.notify_all();
}

void Agent::Drain() {
  {
    std::lock_guard lock(mutex_);
    draining_ = true;
  }
  Wake();
}

void Agent::Stop() {
  stop_.request_stop();
  Wake();
}

absl::Status Agent::Run() {
  if (options_.open_workplace) {
    FUSION_ASSIGN_OR_RETURN(std::unique_ptr<Workplace> opened, options_.open_workplace(&blobs_));
    workplace_ = std::move(opened);
  } else {
    FUSION_ASSIGN_OR_RETURN(std::unique_ptr<LocalWorkplace> opened,
                            LocalWorkplace::Open(WithMetrics(options_.workplace, options_.metrics), &blobs_));
    workplace_ = std::move(opened);
  }
  workplace_->OnChange([this] { Wake(); });
  workplace_->OnNearlyDone([this](const std::string& task, int64_t fence) { held_.NearlyDone(task, fence); });
  for (const std::string& note : workplace_->notes()) spdlog::info("{}", note);
  const v1::Confinement& confinement = workplace_->confinement();
  spdlog::info("confined by: runners {}; host code {}; compilers {}", confinement.runner(),
               confinement.host_code().empty() ? "not offered" : confinement.host_code(),
               confinement.compiler());
  for (const v1::DeviceDescription& device : workplace_->devices())
    spdlog::info("{} {} {}: {:.1f} GB/s", v1::Target_Name(device.target()), device.arch(), device.name(),
                 device.copy_bytes_per_second() * 1e-9);

  Backoff backoff;
  bool connected = true;  // so that the first failure is told
  bool known = false;     // the server has answered once
  bool draining = false;
  auto reached = std::chrono::steady_clock::now();  // when the server last answered, or draining began
  absl::Status refused;
  while (!stop_.stop_requested()) {
    {
      std::lock_guard lock(mutex_);
      if (draining_ && held_.empty()) break;
      if (draining_ && !std::exchange(draining, true)) reached = std::chrono::steady_clock::now();
    }
    if (draining &&
        std::chrono::steady_clock::now() - reached > std::chrono::duration<double>(options_.drain_seconds)) {
      spdlog::warn("the server has not answered for {:.0f} s: {} tasks are left to their leases",
                   options_.drain_seconds, held_.Reports().size());
      break;
    }
    std::chrono::duration<double> next_contact{0};
    const absl::Status status = Synchronize(&next_contact);
    CountCall(status);
    if (status.ok()) {
      if (!connected) spdlog::info("the server is back");
      connected = known = true;
      reached = std::chrono::steady_clock::now();
      backoff.Reset();
      std::unique_lock lock(mutex_);
      // A new result is told at once, unless the last one was not accepted: then the server needs a moment.
      if (held_.HasFinished())
        next_contact = std::min(next_contact, std::chrono::duration<double>(kUnacceptedSeconds));
      woken_.wait_for(lock, stop_.get_token(), next_contact, [&] { return news_; });
    } else if (!known && IsRefusal(status.code())) {
      // A server that knew this worker may take it again, with a new certificate; one that never did will
      // not.
      refused = status;
      break;
    } else if (!absl::IsCancelled(status)) {
      if (connected)
        spdlog::warn("the server does not answer: {}; trying again", std::string(status.message()));
      connected = false;
      backoff.Wait(stop_.get_token());
    }
  }
  const bool stopped = stop_.stop_requested();
  EndCalls();
  held_.StopAll();
  workplace_.reset();  // waits for its threads
  if (stopped) GiveBack();
  std::lock_guard lock(mutex_);
  if (replaced_)
    return absl::AbortedError(absl::StrCat("a newer process works under the name ", name_,
                                           "; give each worker a name of its own (--name)"));
  return refused;
}

v1::SynchronizeRequest Agent::State() {
  v1::SynchronizeRequest request;
  request.set_worker(name_);
  request.set_instance(instance_);
  for (v1::TaskReport& report : held_.Reports()) *request.add_tasks() = std::move(report);
  std::lock_guard lock(mutex_);
  request.set_draining(draining_);
  if (workplace_ == nullptr) return request;
  // Problems first: a device that comes back between both is said without its figures once more, and out.
  std::vector<v1::DeviceProblem> problems = workplace_->problems();
  for (const v1::DeviceDescription& device : workplace_->devices()) *request.add_devices() = device;
  for (const v1::BuildCapability& build : workplace_->builds()) *request.add_builds() = build;
  std::set<std::string> taken = held_.RunningDevices();
  for (v1::DeviceProblem& problem : problems) {
    taken.insert(problem.device_uuid());
    *request.add_problems() = std::move(problem);
  }
  *request.mutable_confinement() = workplace_->confinement();
  request.set_version(FUSION_VERSION);
  if (draining_) return request;
  request.set_free_build_slots(std::max(0, workplace_->build_slots() - held_.Running(v1::BUILD)));
  for (const v1::DeviceDescription& device : workplace_->devices())
    if (!taken.contains(device.uuid())) request.add_free_devices(device.uuid());
  request.set_free_time_slots(request.free_devices_size());
  return request;
}

absl::Status Agent::Synchronize(std::chrono::duration<double>* next_contact) {
  {
    std::lock_guard lock(mutex_);
    news_ = false;
  }
  // Read after news_ was cleared: what changes from here on is told with the next call.
  v1::SynchronizeRequest request = State();
  // Finished tasks are reported at once, running ones every few seconds. A server that has not answered yet,
  // or not since a call failed, is not asked to wait with it: whoever watches the worker wants to know.
  const bool finished = held_.HasFinished(), greeting = !answered_;
  const double wait = finished || greeting ? 0
                      : held_.empty()      ? options_.wait_seconds
                                           : std::min(options_.wait_seconds, kContactSeconds);
  const std::shared_ptr<Call> call = StartCall(std::move(request), wait);
  for (bool answered = false; !answered;) {
    bool news = false;
    std::vector<v1::SynchronizeResponse> answers;
    {
      // Looked at and taken in one: an answer that came in between would be waited for again.
      std::unique_lock lock(mutex_);
      woken_.wait(lock, [&] {
        news = (news_ && wait > 0) || stop_.stop_requested();
        return news ||
               std::any_of(calls_.begin(), calls_.end(), [](const auto& each) { return each->answered; });
      });
      answered = call->answered;
      answers = TakeAnswers();
    }
    for (const v1::SynchronizeResponse& answer : answers) {
      Handle(answer);
      *next_contact =
          std::chrono::duration<double>(std::clamp(answer.next_contact_seconds(), 0.0, kContactSeconds));
    }
    if (news && !answered) return absl::CancelledError("there is news");
  }
  answered_ = call->status.ok();
  if (!call->status.ok()) {
    const auto code = static_cast<absl::StatusCode>(call->status.error_code());
    return absl::Status(IsRefusal(code) ? code : absl::StatusCode::kUnavailable,
                        call->status.error_message());
  }
  // The call was short to bring results. Now that they are accepted, one that waits: what comes next of their
  // job, this worker's device may be needed for.
  if ((finished || greeting) && !held_.HasFinished()) *next_contact = std::chrono::duration<double>(0);
  return absl::OkStatus();
}

std::shared_ptr<Agent::Call> Agent::StartCall(v1::SynchronizeRequest request, double wait_seconds) {
  auto call = std::make_shared<Call>();
  call->request = std::move(request);
  call->request.set_wait_seconds(wait_seconds);
  call->context.set_deadline(InSeconds(wait_seconds + kCallSlackSeconds));
  std::shared_ptr<Call> kept;  // by the server, though it has had a newer one
  {
    std::lock_guard lock(mutex_);
    if (calls_.size() >= kMostCalls) {
      kept = std::move(calls_.front());
      calls_.pop_front();
    }
    calls_.push_back(call);
    ++calls_under_way_;
  }
  if (kept != nullptr) kept->context.TryCancel();
  stub_->async()->Synchronize(&call->context, &call->request, &call->response,
                              [this, call](grpc::Status status) {
                                std::lock_guard lock(mutex_);
                                call->status = std::move(status);
                                call->answered = true;
                                if (!call->wanted) std::erase(calls_, call);
                                --calls_under_way_;
                                woken_.notify_all();
                              });
  return call;
}

std::vector<v1::SynchronizeResponse> Agent::TakeAnswers() {
  std::vector<v1::SynchronizeResponse> answers;
  const auto behind_newest =
      std::find_if(calls_.rbegin(), calls_.rend(), [](const auto& call) { return call->answered; }).base();
  for (auto call = calls_.begin(); call != behind_newest; ++call) {
    // An answer that comes after that to a newer call is out of date, as if it had been lost: the server
    // tells it again.
    (*call)->wanted = false;
    if ((*call)->answered && (*call)->status.ok()) answers.push_back(std::move((*call)->response));
  }
  std::erase_if(calls_, [](const auto& call) { return call->answered && !call->wanted; });
  return answers;
}

void Agent::EndCalls() {
  std::unique_lock lock(mutex_);
  const std::deque<std::shared_ptr<Call>> calls = calls_;
  lock.unlock();
  for (const std::shared_ptr<Call>& call : calls) call->context.TryCancel();
  lock.lock();
  woken_.wait(lock, [&] { return calls_under_way_ == 0; });
  calls_.clear();
}

void Agent::Handle(const v1::SynchronizeResponse& response) {
  for (const std::string& task : response.accepted()) held_.Forget(task);
  for (const std::string& task : response.cancelled()) held_.Forget(task);
  if (response.drain()) {
    std::lock_guard lock(mutex_);
    replaced_ = replaced_ || response.replaced();
    if (!std::exchange(draining_, true)) spdlog::info("draining");
  }
  for (const v1::Assignment& assignment : response.assignments()) {
    const HeldTasks::Started started = held_.Start(assignment);
    if (!started.is_new) continue;
    const AssignmentScope scope(assignment.task(), assignment.traceparent());
    spdlog::debug("{} {}", assignment.has_build() ? "build" : "time", assignment.task());
    if (options_.metrics != nullptr) options_.metrics->Began(assignment);
    v1::Assignment kind;  // all that is counted of it
    if (assignment.has_time()) kind.mutable_time();
    workplace_->Start(assignment, started.stop,
                      [this, kind, start = std::chrono::steady_clock::now()](v1::TaskReport report) {
                        spdlog::debug("{} ended: {}", report.task(), OutcomeOf(report));
                        if (options_.metrics != nullptr) options_.metrics->Ended(kind, report, start);
                        held_.Finish(std::move(report));
                      });
  }
}

void Agent::CountCall(const absl::Status& status) {
  if (options_.metrics == nullptr || absl::IsCancelled(status)) return;
  options_.metrics->connected->Set(status.ok() ? 1 : 0);
  if (!status.ok()) options_.metrics->failed_calls->Add();
}

void Agent::GiveBack() {
  v1::SynchronizeRequest request = State();
  if (request.tasks_size() == 0) return;
  request.set_draining(true);
  for (v1::TaskReport& report : *request.mutable_tasks())
    if (report.has_running()) report.set_failure("the worker was stopped");
  grpc::ClientContext context;
  context.set_deadline(InSeconds(kGiveBackSeconds));
  v1::SynchronizeResponse response;
  const grpc::Status status = stub_->Synchronize(&context, request, &response);
  if (!status.ok())
    spdlog::info("tasks could not be given back; their leases will end: {}", status.error_message());
}

}  // namespace fusion
