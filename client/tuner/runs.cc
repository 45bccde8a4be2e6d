// Runs of sections: what a program calls all the time.
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "client/tuner/clock.h"
#include "client/tuner/fusion_tuner.h"
#include "client/tuner/handles.h"
#include "client/tuner/message.h"

using namespace fusion::tuning;  // NOLINT: these functions are the C face of that namespace

namespace {

using State = Runner::State;

int Undeclared(const Section* section) {
  return Fail(section == nullptr ? absl::InvalidArgumentError("the section is NULL")
                                 : absl::FailedPreconditionError(absl::StrCat(
                                       "section ", section->name(),
                                       " is not declared: call fusion_tuner_section_declare first")));
}

bool Usable(const Section* section) { return section != nullptr && section->declared(); }

int NotStarted(const Section& section) {
  return Fail(absl::FailedPreconditionError(absl::StrCat(
      "section ", section.name(), " was not started in this thread: call fusion_tuner_start first")));
}

int NotOfTime(const Section& section) {
  return Fail(absl::FailedPreconditionError(
      absl::StrCat("section ", section.name(), " is tuned for ", section.declaration.objective().name(),
                   ", not for time: end the run with fusion_tuner_report")));
}

int BadValue(const Section& section, double value) {
  return Fail(absl::InvalidArgumentError(absl::StrCat("section ", section.name(), ": ", value,
                                                      " was reported; values must be positive and finite")));
}

bool IsValue(double value) { return std::isfinite(value) && value > 0; }

// The clock may not have moved.
double SecondsSince(uint64_t start) {
  const uint64_t now = NowNanoseconds();
  return static_cast<double>(now > start ? now - start : 1) * 1e-9;
}

// Returns the seconds that a run has cost which gives no value.
double SecondsSpent(const Section& section, State state, uint64_t start) {
  return state == State::kStarted && section.of_time() ? SecondsSince(start) : 0;
}

void EnsureAssigned(Section& section, Runner& runner) {
  if (runner.state != State::kIdle) return;
  section.Assign(runner, runner.assignment);
  runner.state = State::kAssigned;
}

void End(Section& section, Runner& runner, Sample::Kind kind, double value) {
  runner.state = State::kIdle;
  section.End(runner, runner.assignment, kind, value);
}

// internal[] of fusion_tuner_run: the record, and the number of runs it had before this one.
RunRecord* RecordOf(const fusion_tuner_run* run) {
  if (run == nullptr || run->section == nullptr || run->internal[0] == 0) return nullptr;
  auto* record = reinterpret_cast<RunRecord*>(run->internal[0]);
  return record->serial == run->internal[1] ? record : nullptr;
}

int RunHasEnded() {
  return Fail(
      absl::FailedPreconditionError("the run has ended, or was never begun with fusion_tuner_run_begin"));
}

int EndRun(fusion_tuner_run* run, RunRecord* record, Sample::Kind kind, double value) {
  Section& section = *Of(run->section);
  Runner& runner = section.ThisThread();
  section.End(runner, record->assignment, kind, value);
  section.GiveRecord(runner, record);
  run->internal[0] = 0;
  run->values = nullptr;
  return FUSION_TUNER_OK;
}

}  // namespace

const fusion_tuner_value* fusion_tuner_next(fusion_tuner_section* handle) {
  Section* section = Of(handle);
  if (!Usable(section)) {
    Undeclared(section);
    return nullptr;
  }
  Runner& runner = section->ThisThread();
  EnsureAssigned(*section, runner);
  return runner.assignment.values.data();
}

int fusion_tuner_start(fusion_tuner_section* handle) {
  Section* section = Of(handle);
  if (!Usable(section)) return Undeclared(section);
  Runner& runner = section->ThisThread();
  if (runner.state == State::kStarted)
    return Fail(absl::FailedPreconditionError(absl::StrCat(
        "section ", section->name(),
        " is started in this thread already; a section that calls itself takes fusion_tuner_run_begin")));
  EnsureAssigned(*section, runner);
  runner.state = State::kStarted;
  runner.start_nanoseconds = NowNanoseconds();
  return FUSION_TUNER_OK;
}

int fusion_tuner_stop(fusion_tuner_section* handle) {
  Section* section = Of(handle);
  if (!Usable(section)) return Undeclared(section);
  Runner& runner = section->ThisThread();
  if (runner.state != State::kStarted) return NotStarted(*section);
  const double seconds = SecondsSince(runner.start_nanoseconds);
  if (!section->of_time()) return NotOfTime(*section);
  End(*section, runner, Sample::Kind::kValue, seconds);
  return FUSION_TUNER_OK;
}

int fusion_tuner_report(fusion_tuner_section* handle, double value) {
  Section* section = Of(handle);
  if (!Usable(section)) return Undeclared(section);
  if (!IsValue(value)) return BadValue(*section, value);
  Runner& runner = section->ThisThread();
  // Without next or start: what is reported is of the values of the run that would be next.
  EnsureAssigned(*section, runner);
  End(*section, runner, Sample::Kind::kValue, value);
  return FUSION_TUNER_OK;
}

int fusion_tuner_fail(fusion_tuner_section* handle) {
  Section* section = Of(handle);
  if (!Usable(section)) return Undeclared(section);
  Runner& runner = section->ThisThread();
  if (runner.state == State::kIdle) return NotStarted(*section);
  End(*section, runner, Sample::Kind::kFailure,
      SecondsSpent(*section, runner.state, runner.start_nanoseconds));
  return FUSION_TUNER_OK;
}

int fusion_tuner_cancel(fusion_tuner_section* handle) {
  Section* section = Of(handle);
  if (!Usable(section)) return Undeclared(section);
  Runner& runner = section->ThisThread();
  if (runner.state == State::kIdle) return NotStarted(*section);
  End(*section, runner, Sample::Kind::kReturned, 0);
  return FUSION_TUNER_OK;
}

int fusion_tuner_run_begin(fusion_tuner_section* handle, fusion_tuner_run* run) {
  if (run == nullptr) return Fail(absl::InvalidArgumentError("the run is NULL"));
  std::memset(run, 0, sizeof(*run));
  Section* section = Of(handle);
  if (!Usable(section)) return Undeclared(section);
  Runner& runner = section->ThisThread();
  RunRecord* record = section->TakeRecord(runner);
  section->Assign(runner, record->assignment);
  run->section = handle;
  run->values = record->assignment.values.data();
  run->internal[0] = reinterpret_cast<uint64_t>(record);
  run->internal[1] = record->serial;
  record->start_nanoseconds = NowNanoseconds();
  return FUSION_TUNER_OK;
}

int fusion_tuner_run_stop(fusion_tuner_run* run) {
  RunRecord* record = RecordOf(run);
  if (record == nullptr) return RunHasEnded();
  const double seconds = SecondsSince(record->start_nanoseconds);
  if (!Of(run->section)->of_time()) return NotOfTime(*Of(run->section));
  return EndRun(run, record, Sample::Kind::kValue, seconds);
}

int fusion_tuner_run_report(fusion_tuner_run* run, double value) {
  RunRecord* record = RecordOf(run);
  if (record == nullptr) return RunHasEnded();
  if (!IsValue(value)) return BadValue(*Of(run->section), value);
  return EndRun(run, record, Sample::Kind::kValue, value);
}

int fusion_tuner_run_fail(fusion_tuner_run* run) {
  RunRecord* record = RecordOf(run);
  if (record == nullptr) return RunHasEnded();
  return EndRun(run, record, Sample::Kind::kFailure,
                SecondsSpent(*Of(run->section), State::kStarted, record->start_nanoseconds));
}

int fusion_tuner_run_cancel(fusion_tuner_run* run) {
  RunRecord* record = RecordOf(run);
  if (record == nullptr) return RunHasEnded();
  return EndRun(run, record, Sample::Kind::kReturned, 0);
}
