// IsolatedBuilder: NVRTC in a process of its own.
#include <sys/wait.h>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/sandbox/child_process.h"
#include "base/sandbox/machine_offer.h"
#include "base/sandbox/resource_limits.h"
#include "base/status_macros.h"
#include "worker/build/compiler_end.h"
#include "worker/measure/runner_process.h"

namespace fusion {

namespace {

// Device code of a kernel has kilobytes to some megabytes.
constexpr uint32_t kMostBuildReplyBytes = 64 << 20;

SandboxPolicy CompilerPolicy() {
  SandboxPolicy policy;
  policy.kind = SandboxKind::kDeviceCompiler;
  return policy;
}

// Returns whether the process has ended while it waited for work: it is the first to go when memory ends.
bool HasEnded(const RunnerProcess& runner) {
  siginfo_t info{};
  // The RunnerProcess is still to reap it.
  return waitid(P_PID, static_cast<id_t>(runner.pid()), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
         info.si_pid != 0;
}

// Returns whether the compiler gave up at what the source asked for: NVRTC aborts without more memory.
bool GaveUp(const RunnerDeath& death) {
  return std::any_of(std::begin(kSignalsOfTheSource), std::end(kSignalsOfTheSource),
                     [&](int signal) { return death.message == ExitStatus{.signal = signal}.ToString(); });
}

bool LacksMemory() {
  return MachineLacksMemory(LimitsOf(CompilerPolicy().kind).data_bytes, MemoryOfThisMachine());
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
    while (runner == nullptr && !pool_->idle.empty()) {
      if (!HasEnded(*pool_->idle.back())) runner = std::move(pool_->idle.back());
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
    if (output.result.outcome() == v1::COMPILE_ERROR && SaysOutOfMemory(output.result.log()) && LacksMemory())
      output.result.set_outcome(v1::OUTCOME_UNSPECIFIED);
    if (!output.has_outcome()) return output;  // the next one gets another process
    std::lock_guard lock(pool_->mutex);
    pool_->idle.push_back(std::move(runner));
    return output;
  }
  const bool late =
      death.cause == RunnerDeath::Cause::kTimeout || death.cause == RunnerDeath::Cause::kStopped;
  // Otherwise none: it was killed, or there is no runner.
  if (late) output.result.set_outcome(v1::TIMEOUT);
  // NVRTC aborts where it gets no more memory: at the limit, or because there is no more.
  const bool lacks_memory = death.message == ExitStatus{.signal = SIGABRT}.ToString() && LacksMemory();
  if (GaveUp(death) && !lacks_memory) output.result.set_outcome(v1::COMPILE_ERROR);
  output.result.set_log(
      absl::StrCat("the compiler ", late ? "was given up: " : "failed: ", reply.status().message()));
  return output;
}

}  // namespace fusion
