// IsolatedBuilder: NVRTC in a process of its own.
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "worker/measure/runner_process.h"
#include "worker/measure/status_macros.h"
#include "worker/sandbox/machine_offer.h"

namespace fusion {

namespace {

// Device code of a kernel has kilobytes to some megabytes.
constexpr uint32_t kMostBuildReplyBytes = 64 << 20;

SandboxPolicy CompilerPolicy() {
  SandboxPolicy policy;
  policy.kind = SandboxKind::kDeviceCompiler;
  return policy;
}

}  // namespace

struct IsolatedBuilder::Pool {
  std::mutex mutex;
  std::vector<std::unique_ptr<RunnerProcess>> idle;
};

IsolatedBuilder::IsolatedBuilder(std::string version, std::string runner_program)
    : version_(std::move(version)),
      runner_program_(std::move(runner_program)),
      pool_(std::make_unique<Pool>()) {}

IsolatedBuilder::~IsolatedBuilder() = default;

absl::StatusOr<std::unique_ptr<Builder>> IsolatedBuilder::Create(v1::Target target,
                                                                 const std::string& runner_program) {
  FUSION_ASSIGN_OR_RETURN(const std::unique_ptr<Builder> builder, MakeBuilder(target));
  return std::unique_ptr<Builder>(new IsolatedBuilder(builder->CompilerVersion(), runner_program));
}

std::string IsolatedBuilder::Confinement() const {
  return ConfinementText(CompilerPolicy(), MachineOffer::Get());
}

BuildOutput IsolatedBuilder::Build(const v1::BuildTask& task, std::stop_token stop) {
  std::unique_ptr<RunnerProcess> runner;
  {
    std::lock_guard lock(pool_->mutex);
    if (!pool_->idle.empty()) {
      runner = std::move(pool_->idle.back());
      pool_->idle.pop_back();
    }
  }
  if (runner == nullptr) runner = std::make_unique<RunnerProcess>(runner_program_, CompilerPolicy());
  v1::RunnerRequest request;
  *request.mutable_build() = task;
  RunnerLimits limits;
  // The builder inside keeps the deadline if it can; this one is for when it cannot.
  limits.total_seconds =
      1 + (task.deadline_seconds() > 0 ? task.deadline_seconds() : kDefaultBuildDeadlineSeconds);
  limits.set_up_seconds = 0;
  limits.reply_bytes = kMostBuildReplyBytes;
  RunnerDeath death;
  absl::StatusOr<v1::RunnerReply> reply = runner->Call(request, limits, &death, stop);
  BuildOutput output;
  if (reply.ok()) {
    output.result = reply->built().result();
    output.binary = reply->built().binary();
    std::lock_guard lock(pool_->mutex);
    pool_->idle.push_back(std::move(runner));
    return output;
  }
  const bool late =
      death.cause == RunnerDeath::Cause::kTimeout || death.cause == RunnerDeath::Cause::kStopped;
  output.result.set_outcome(late ? v1::TIMEOUT : v1::COMPILE_ERROR);
  output.result.set_log(
      absl::StrCat("the compiler ", late ? "was given up: " : "failed: ", reply.status().message()));
  return output;
}

}  // namespace fusion
