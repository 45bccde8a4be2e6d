// The timing protocol (method version 3). Each program is first judged: one run with poisoned outputs,
// compared with the reference. Good ones are warmed up, then sampled in rounds: in every round each program
// runs once with flushed caches, and in a series of up to 20 runs with warm ones, whose mean is a sample; the
// unfused program among them, in an order that rotates, so that drift of the clocks hits all alike and
// speed-ups are paired. A program takes part until the 95 % interval of its cold median (or, if the method
// says so, warm one) is narrow enough, or its samples or seconds are used up; the unfused one as long as any
// other. Samples that something disturbed do not count (statistics.h): while too few are left to say what a
// run takes, as on a busy machine, a program has kPatience times its seconds. At last every program runs once
// more, timed, and is judged on that run and on a few that follow it without any between: what rests in a
// turn is found.
#pragma once

#include <functional>

#include "absl/status/statusor.h"
#include "fusion/v1/runner.pb.h"
#include "worker/measure/activity.h"
#include "worker/measure/session_data.h"

namespace fusion {

// A program whose time is not steady is sampled so many times longer.
inline constexpr double kPatience = 4;

// It is called for a program that is out: its number (kUnfusedProgram or position) and what is known of it.
using FinishedCallback = std::function<void(int, const v1::ProgramMeasurement&)>;

// Times the programs of a task. session must be that of the task. An unfused program without launches is left
// out, and nothing is paired then. `sampled`, if not null, is called when all samples are taken, with some
// milliseconds of judging left. Bad programs are outcomes in the result. An error means that the session
// cannot go on: Aborted, as ExecutionBackend documents; activity says which program was running.
absl::StatusOr<v1::TimeResult> MeasurePrograms(ExecutionBackend* backend, SessionData* session,
                                               const v1::TimeTask& task, const BinaryMap& binaries,
                                               double copy_bytes_per_second, ActivityPage* activity,
                                               const FinishedCallback& finished,
                                               const std::function<void()>& sampled = nullptr);

// Defaults for fields of the method that are 0: 5 to 50 samples, 1 %, 2 s a program, 10 s a run.
v1::MeasurementMethod CompleteMethod(const v1::MeasurementMethod& method);

}  // namespace fusion
