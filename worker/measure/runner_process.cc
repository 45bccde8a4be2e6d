#include "worker/measure/runner_process.h"

#include <unistd.h>

#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/sandbox/message_pipe.h"
#include "base/status_macros.h"
#include "worker/build/host_arch.h"
#include "worker/measure/runner_options.h"

namespace fusion {
namespace {

// Beyond a run's deadline, for the two processes to notice each other on a busy machine.
constexpr double kSlackSeconds = 0.25;

}  // namespace

RunnerProcess::RunnerProcess(std::string program, SandboxPolicy policy)
    : program_(std::move(program)), policy_(std::move(policy)) {}

RunnerProcess::~RunnerProcess() = default;

absl::Status RunnerProcess::Start() {
  const auto begin = std::chrono::steady_clock::now();
  const absl::Status status = StartOrTake();
  start_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  starts_ += status.ok();
  return status;
}

absl::Status RunnerProcess::StartOrTake() {
  if (take_spare_) {
    if (const std::unique_ptr<RunnerProcess> spare = take_spare_(); spare != nullptr && spare->running()) {
      child_ = std::move(spare->child_);
      activity_ = std::move(spare->activity_);
      return absl::OkStatus();
    }
  }
  FUSION_ASSIGN_OR_RETURN(ChildProcess::Options options, RunnerOptions(program_, policy_));
  FUSION_ASSIGN_OR_RETURN(activity_, ActivityPage::Create());
  options.inherited_descriptor = activity_->descriptor();
  FUSION_ASSIGN_OR_RETURN(child_, ChildProcess::Start(options));
  return absl::OkStatus();
}

void RunnerProcess::End() {
  child_.reset();
  activity_.reset();
}

absl::Status RunnerProcess::Died(RunnerDeath::Cause cause, const std::string& message, RunnerDeath* death) {
  death->cause = cause;
  death->activity = activity_->Get();
  death->message = message;
  if (message.empty()) {
    // It went by itself: how?
    std::optional<ExitStatus> status =
        child_->Wait(std::chrono::steady_clock::now() + std::chrono::seconds(10));
    death->message = status.has_value() ? status->ToString() : "closed its output";
  }
  child_.reset();
  activity_.reset();
  needs_probe_ |= cause != RunnerDeath::Cause::kStopped;
  return absl::AbortedError(death->message);
}

absl::StatusOr<v1::RunnerReply> RunnerProcess::Call(
    const v1::RunnerRequest& request, const RunnerLimits& limits, RunnerDeath* death, std::stop_token stop,
    const std::function<void(const v1::RunnerReply&)>& on_progress) {
  *death = {};
  if (child_ == nullptr) FUSION_RETURN_IF_ERROR(Start());
  const auto start = std::chrono::steady_clock::now();
  RunnerDeath::Cause cause = RunnerDeath::Cause::kNone;
  std::string reason;
  auto give_up = [&](RunnerDeath::Cause why, std::string message) {
    cause = why;
    reason = std::move(message);
    return absl::DeadlineExceededError(reason);
  };
  const KeepWaiting keep_waiting = [&]() -> absl::Status {
    if (stop.stop_requested()) return give_up(RunnerDeath::Cause::kStopped, "stopped");
    const double total = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (limits.total_seconds > 0 && total > limits.total_seconds)
      return give_up(RunnerDeath::Cause::kTimeout,
                     absl::StrFormat("took longer than %.3g s", limits.total_seconds));
    const ActivityState state = activity_->Get();
    double limit = 0;
    const char* what = "";
    switch (state.activity) {
      case Activity::kIdle:
        break;
      case Activity::kSetUp:
        limit = limits.set_up_seconds, what = "preparing and checking data";
        break;
      case Activity::kReference:
        limit = limits.reference_seconds, what = "the reference";
        break;
      case Activity::kLoad:
        limit = limits.load_seconds, what = "loading the code";
        break;
      case Activity::kRun:
        limit = limits.run_seconds, what = "a run";
        break;
    }
    if (limit > 0 && state.seconds > limit + kSlackSeconds)
      return give_up(RunnerDeath::Cause::kTimeout,
                     absl::StrFormat("%s took longer than %.3g s", what, limit));
    return absl::OkStatus();
  };

  absl::Status status = WriteMessage(child_->input(), request, keep_waiting);
  v1::RunnerReply reply;
  for (int progress = 0; status.ok(); ++progress) {
    status = ReadMessage(child_->output(), &reply, keep_waiting, limits.reply_bytes);
    if (!status.ok() || !(reply.has_finished() || reply.has_sampled())) break;
    if (progress == limits.progress_replies)
      status = absl::DataLossError("more replies than there is to tell");
    if (status.ok() && on_progress) on_progress(reply);
  }
  if (cause != RunnerDeath::Cause::kNone) return Died(cause, reason, death);
  if (absl::IsDataLoss(status))
    return Died(RunnerDeath::Cause::kFault, "its reply was not one: the program wrote into it", death);
  if (!status.ok()) return Died(RunnerDeath::Cause::kFault, "", death);
  if (reply.has_fault()) return Died(RunnerDeath::Cause::kFault, reply.fault(), death);
  if (reply.has_failure()) return absl::FailedPreconditionError(reply.failure());
  return reply;
}

absl::StatusOr<v1::DescribeReply> RunnerProcess::Describe(v1::Target target) {
  v1::DescribeRequest request;
  request.set_target(target);
  return Describe(request);
}

absl::StatusOr<v1::DescribeReply> RunnerProcess::Outline() {
  v1::DescribeRequest request;
  request.set_target(v1::CUDA);
  request.set_without_use(true);
  return Describe(request);
}

absl::StatusOr<v1::DeviceDescription> RunnerProcess::DescribeDevice(const std::string& device_uuid) {
  v1::DescribeRequest request;
  request.set_device_uuid(device_uuid);
  FUSION_ASSIGN_OR_RETURN(v1::DescribeReply reply, Describe(request));
  if (reply.problems_size() > 0) return absl::FailedPreconditionError(reply.problems(0).reason());
  if (reply.devices_size() != 1) return absl::InternalError("the runner did not describe the device");
  return std::move(*reply.mutable_devices(0));
}

absl::StatusOr<v1::DescribeReply> RunnerProcess::Describe(const v1::DescribeRequest& described) {
  v1::RunnerRequest request;
  *request.mutable_describe() = described;
  RunnerDeath death;
  RunnerLimits limits;
  limits.total_seconds = 120;
  FUSION_ASSIGN_OR_RETURN(v1::RunnerReply reply, Call(request, limits, &death));
  // A runner starts no programs, so no compiler either.
  for (v1::DeviceDescription& device : *reply.mutable_described()->mutable_devices())
    if (device.target() == v1::HOST) {
      device.set_toolkit_version(CompilerVersion(v1::HOST));
      device.set_arch(HostArch());  // a confined runner may not see what it is made of
    }
  return std::move(*reply.mutable_described());
}

absl::Status RunnerProcess::Open(const std::string& device_uuid, bool beside_timings, std::stop_token stop) {
  v1::RunnerRequest request;
  request.mutable_open()->set_device_uuid(device_uuid);
  request.mutable_open()->set_beside_timings(beside_timings);
  RunnerDeath death;
  RunnerLimits limits;
  limits.total_seconds = 60;
  return Call(request, limits, &death, stop).status();
}

absl::Status RunnerProcess::Probe(const std::string& device_uuid) {
  v1::RunnerRequest request;
  request.mutable_probe()->set_device_uuid(device_uuid);
  RunnerDeath death;
  RunnerLimits limits;
  limits.total_seconds = 60;
  FUSION_RETURN_IF_ERROR(Call(request, limits, &death).status());
  needs_probe_ = false;
  return absl::OkStatus();
}

}  // namespace fusion
