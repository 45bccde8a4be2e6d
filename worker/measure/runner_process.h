// The worker's side of a runner: starts it, talks to it with deadlines, kills it when it hangs, and says what
// it was doing when it died. Nothing that a candidate does reaches the worker.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/sandbox/child_process.h"
#include "base/sandbox/policy.h"
#include "fusion/v1/runner.pb.h"
#include "worker/build/builder.h"
#include "worker/measure/activity.h"

namespace fusion {

// Limits of how long the parts of a request may take. 0: no limit.
struct RunnerLimits {
  double set_up_seconds = 300;  // without a pause: our own code; generous, it grows with the data
  double reference_seconds = 300;
  double load_seconds = 60;
  double run_seconds = 0;  // one run of a program
  double total_seconds = 0;
  // A hostile runner can make the worker read so much.
  uint32_t reply_bytes = 1 << 20;
  int progress_replies = 0;
};

// Says how a request ended without a reply.
struct RunnerDeath {
  enum class Cause { kNone, kFault, kTimeout, kStopped } cause = Cause::kNone;
  std::string message;  // "killed by signal 11 (Segmentation fault)", the CUDA error, "ran longer than 2 s"
  ActivityState activity;  // what the runner was doing
};

// Not thread safe: one request at a time.
class RunnerProcess {
 public:
  // The program is looked for: `program`, $FUSION_RUNNER, fusion-runner beside this executable, in ../bin
  // beside it (for tests), in PATH. It starts with the first request.
  // It is confined by the policy as far as this machine permits (base/sandbox); the default suits every
  // target, and lets a driver be loaded. kHostCode cannot load one.
  explicit RunnerProcess(std::string program = "", SandboxPolicy policy = {});
  ~RunnerProcess();

  // Says where another process comes from when one is needed, instead of being started then: a runner of the
  // same program and policy with a process that waits for requests, or null where none is ready
  // (RunnerPool::Take). Set before the first request.
  void TakeSparesFrom(std::function<std::unique_ptr<RunnerProcess>()> take_spare) {
    take_spare_ = std::move(take_spare);
  }

  // Sends a request and waits for its final reply; those before it go to `on_progress`. A runner that faults,
  // hangs or is stopped is gone afterwards; the next request starts another. Statuses: Aborted: it died,
  // *death says how; FailedPrecondition: it answered with a failure; NotFound: no runner program; Internal.
  absl::StatusOr<v1::RunnerReply> Call(
      const v1::RunnerRequest& request, const RunnerLimits& limits, RunnerDeath* death,
      std::stop_token stop = {}, const std::function<void(const v1::RunnerReply&)>& on_progress = nullptr);

  // Returns the devices of a target (TARGET_AUTO: all) with measured figures, and why some kind is missing.
  absl::StatusOr<v1::DescribeReply> Describe(v1::Target target);
  // Does the same for CUDA devices without using them, so that none can end the runner.
  absl::StatusOr<v1::DescribeReply> Outline();
  // Describes the device alone, with figures. FailedPrecondition: it does not work, the message says why.
  absl::StatusOr<v1::DeviceDescription> DescribeDevice(const std::string& device_uuid);
  // Returns OK when a known kernel computes rightly on the device.
  absl::Status Probe(const std::string& device_uuid);
  // Makes ready for timings on the device; `beside_timings`: only what disturbs none in another runner
  // (OpenRequest).
  absl::Status Open(const std::string& device_uuid, bool beside_timings, std::stop_token stop = {});

  // Ends the process; the next request starts another.
  void End();

  // Tells whether the last runner died of a fault or timeout: the device must be probed before the next task.
  bool needs_probe() const { return needs_probe_; }
  bool running() const { return child_ != nullptr; }
  // The id of the runner's process; -1: none runs.
  pid_t pid() const { return child_ != nullptr ? child_->pid() : -1; }
  // Processes that the runner has had so far, and the seconds until they could be talked to.
  int starts() const { return starts_; }
  double start_seconds() const { return start_seconds_; }

 private:
  absl::Status Start();
  absl::Status StartOrTake();
  absl::StatusOr<v1::DescribeReply> Describe(const v1::DescribeRequest& request);
  // Ends the child and fills *death from it.
  absl::Status Died(RunnerDeath::Cause cause, const std::string& message, RunnerDeath* death);

  const std::string program_;
  const SandboxPolicy policy_;
  std::function<std::unique_ptr<RunnerProcess>()> take_spare_;
  std::unique_ptr<ChildProcess> child_;
  std::unique_ptr<ActivityPage> activity_;
  bool needs_probe_ = false;
  int starts_ = 0;
  double start_seconds_ = 0;
};

// Builds in a runner process: a compiler that crashes, or that does not stop at the deadline, takes nothing
// else along. Several threads may build; each uses a process of its own, kept for the next.
class IsolatedBuilder : public Builder {
 public:
  // Does what MakeBuilder does, for a target whose compiler works in process (CUDA).
  static absl::StatusOr<std::unique_ptr<Builder>> Create(v1::Target target,
                                                         const std::string& runner_program = "");
  ~IsolatedBuilder() override;
  BuildOutput Build(const v1::BuildTask& task, std::stop_token stop) override;
  std::string CompilerVersion() const override { return version_; }
  std::string Confinement() const override;

 private:
  IsolatedBuilder(std::string version, std::string runner_program);
  struct Pool;
  const std::string version_;
  const std::string runner_program_;
  const std::unique_ptr<Pool> pool_;
};

}  // namespace fusion
