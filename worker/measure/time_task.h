// Carries out a TimeTask in a runner: a program that faults or hangs gets its outcome, and the others are
// measured in a fresh runner.
#pragma once

#include <functional>
#include <map>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "fusion/v1/worker.pb.h"
#include "worker/measure/runner_process.h"

namespace fusion {

// The device code with a digest.
using BinaryGetter = std::function<absl::StatusOr<std::string>(const std::string& digest)>;

// Where the time of timings went: seconds by part. The runner tells "open", "inputs", "reference", "load",
// "warm_up", "cold", "warm", "verify", "conditions" and "other" (TimingPhase); on this side there are "start"
// (of runners), "probe" (of the device after a fault), "transfer" (what a call took beyond what the runner
// told) and "lost" (calls in which it died).
using TimeSpent = std::map<std::string, double>;

struct TimeTaskOptions {
  double copy_bytes_per_second = 0;  // of the device, for below_floor; 0: not judged
  std::stop_token stop;              // ends the running program too
  TimeSpent* spent = nullptr;        // added to, if not null
  // Called when the result is a matter of moments, as far as can be known; may be null, and called again.
  std::function<void()> nearly_done;
};

// Deadlines: a run may take method.run_deadline_seconds (plus 0.25 s for the processes to notice), loading
// the code of a program 60 s, the reference ten times a run's deadline and 60 s at least, our own filling and
// checking 300 s; all of a task the sum of these and no more, whatever the runner says that it is doing.
//
// When the runner dies, the program that was running gets FAULT or TIMEOUT; then a known kernel must run, and
// all others are measured again, together. When the unfused program is the culprit, nothing is paired. Bad
// programs are data. TimeResult.failure is set when nothing could be measured (EXCEEDS_DEVICE for all, or a
// reference that faults). Statuses: the worker itself failed and another may try: Cancelled after a stop,
// NotFound without a runner or a binary, FailedPrecondition when the known kernel does not run, DataLoss when
// a binary arrived damaged in the runner.
absl::StatusOr<v1::TimeResult> ExecuteTimeTask(RunnerProcess& runner, const v1::TimeTask& task,
                                               const BinaryGetter& get_binary,
                                               const TimeTaskOptions& options = {});

}  // namespace fusion
