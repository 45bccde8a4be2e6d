#include "worker/measure/time_task.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/sandbox/message_pipe.h"
#include "base/status_macros.h"
#include "worker/measure/machine_load.h"
#include "worker/measure/time_remainder.h"
#include "worker/measure/timing.h"

namespace fusion {
namespace {

// Returns the most bytes of the reply about the programs: names, samples, what is known of each launch, and
// messages, which are short. No more, since a few bytes on the pipe can be a hundred times as many in memory.
uint32_t MostReplyBytes(const v1::TimeTask& task, const v1::MeasurementMethod& method) {
  constexpr int64_t kWithoutPrograms = 64 << 10, kOfProgram = 16 << 10, kOfLaunch = 256;
  int64_t bytes = kWithoutPrograms;
  const auto add = [&](const v1::Program& program) {
    bytes += kOfProgram + static_cast<int64_t>(program.name().size());
    bytes += 2 * static_cast<int64_t>(sizeof(double)) * method.maximum_samples();
    for (const v1::Launch& launch : program.launches())
      bytes += kOfLaunch + static_cast<int64_t>(launch.kernel().size());
  };
  add(task.session().unfused());
  for (const v1::Program& program : task.programs()) add(program);
  return static_cast<uint32_t>(std::min<int64_t>(bytes, kMaximumPipeMessageBytes));
}

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

const char* PartName(v1::TimingPhase phase) {
  switch (phase) {
    case v1::TIMING_OPEN:
      return "open";
    case v1::TIMING_INPUTS:
      return "inputs";
    case v1::TIMING_REFERENCE:
      return "reference";
    case v1::TIMING_LOAD:
      return "load";
    case v1::TIMING_WARM_UP:
      return "warm_up";
    case v1::TIMING_COLD:
      return "cold";
    case v1::TIMING_WARM:
      return "warm";
    case v1::TIMING_VERIFY:
      return "verify";
    case v1::TIMING_CONDITIONS:
      return "conditions";
    default:
      return "other";
  }
}

// Adds up what a call of `seconds` went into. What the runner says of it counts as far as it can be true.
void AddCall(const absl::StatusOr<v1::RunnerReply>& reply, double seconds, TimeSpent* spent) {
  if (!reply.ok()) {
    (*spent)["lost"] += seconds;
    return;
  }
  double left = seconds;
  for (const v1::PhaseTime& phase : reply->phases()) {
    if (!(phase.seconds() >= 0 && phase.seconds() <= left)) continue;
    (*spent)[PartName(phase.phase())] += phase.seconds();
    left -= phase.seconds();
  }
  (*spent)["transfer"] += left;
}

// Returns whether the runner says that it is at fault itself.
bool SaysWorkerLost(const v1::TimeResult& timed) {
  return timed.unfused().outcome() == v1::WORKER_LOST ||
         std::any_of(timed.programs().begin(), timed.programs().end(),
                     [](const auto& measurement) { return measurement.outcome() == v1::WORKER_LOST; });
}

// Checks, warming up, the last series: more than any honest program has.
constexpr double kMostRunsBeyondSampling = 50;

}  // namespace

absl::StatusOr<v1::TimeResult> ExecuteTimeTask(RunnerProcess& runner, const v1::TimeTask& task,
                                               const BinaryGetter& get_binary,
                                               const TimeTaskOptions& options) {
  const MachineLoad load;  // a confined runner cannot see it
  RunnerLimits limits;
  const v1::MeasurementMethod method = CompleteMethod(task.method());
  limits.run_seconds = method.run_deadline_seconds();
  limits.reference_seconds = std::max(60.0, 10 * limits.run_seconds);
  // The others go by what the runner says it is doing, which native code of a candidate can forge.
  limits.total_seconds = limits.set_up_seconds + limits.reference_seconds +
                         (task.programs_size() + 1) * (limits.set_up_seconds + limits.load_seconds +
                                                       kPatience * method.seconds_limit() +
                                                       kMostRunsBeyondSampling * limits.run_seconds);
  limits.reply_bytes = MostReplyBytes(task, method);
  limits.progress_replies =
      2 * (task.programs_size() + 2);  // each program and the end are told once; twice is no attack
  TimeSpent unwanted;
  TimeSpent& spent = options.spent != nullptr ? *options.spent : unwanted;
  v1::TimeResult result;
  TimeRemainder remainder(task, &result);
  // Every round ends the task or takes at least one program out.
  while (!remainder.empty()) {
    const double starts_before = runner.start_seconds();
    if (runner.needs_probe()) {
      const auto probing = std::chrono::steady_clock::now();
      const absl::Status probed = runner.Probe(task.device_uuid());
      const double starting = runner.start_seconds() - starts_before;
      spent["start"] += starting;
      spent["probe"] += SecondsSince(probing) - starting;
      if (!probed.ok())
        return absl::FailedPreconditionError(
            absl::StrCat("the device does not run a known kernel after a fault: ", probed.message()));
    }
    FUSION_ASSIGN_OR_RETURN(const v1::RunnerRequest request,
                            remainder.Request(get_binary, options.copy_bytes_per_second));
    RunnerDeath death;
    const double starts_before_call = runner.start_seconds();
    const auto calling = std::chrono::steady_clock::now();
    absl::StatusOr<v1::RunnerReply> reply =
        runner.Call(request, limits, &death, options.stop, [&](const v1::RunnerReply& progress) {
          if (progress.has_sampled()) {
            if (options.nearly_done) options.nearly_done();
            return;
          }
          v1::ProgramMeasurement* known = remainder.Measurement(progress.finished().program());
          if (known != nullptr) *known = progress.finished().measurement();
        });
    const double starting = runner.start_seconds() - starts_before_call;
    spent["start"] += starting;
    AddCall(reply, SecondsSince(calling) - starting, &spent);
    if (reply.ok()) {
      if (SaysWorkerLost(reply->timed())) {
        runner.End();  // its memory is not to be trusted
        return absl::DataLossError(reply->timed().failure());
      }
      remainder.Accept(reply->timed());
      break;
    }
    if (absl::IsFailedPrecondition(reply.status())) {
      remainder.Fail(v1::LAUNCH_ERROR, std::string(reply.status().message()));
      break;
    }
    if (death.cause == RunnerDeath::Cause::kStopped) return absl::CancelledError("stopped");
    if (death.cause == RunnerDeath::Cause::kNone) return reply.status();
    const v1::Outcome outcome = death.cause == RunnerDeath::Cause::kTimeout ? v1::TIMEOUT : v1::FAULT;
    v1::ProgramMeasurement* culprit = remainder.Measurement(death.activity.program);
    // Found bad before it brought the runner down: keep what was found.
    if (culprit != nullptr && culprit->outcome() == v1::OUTCOME_UNSPECIFIED) {
      culprit->set_outcome(outcome);
      culprit->set_message(death.message);
    } else if (culprit == nullptr) {
      const char* what =
          death.activity.activity == Activity::kReference ? "the reference: " : "preparing the session: ";
      remainder.Fail(outcome, absl::StrCat(what, death.message));
      break;
    }
    remainder.DropDecided();
  }
  load.Describe(result.mutable_conditions());
  return result;
}

}  // namespace fusion
