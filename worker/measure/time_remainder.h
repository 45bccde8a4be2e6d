// Keeps what of a TimeTask is still to be measured, and what is known of the rest: so replies of runners
// become a result. A runner may say anything.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fusion/v1/runner.pb.h"
#include "fusion/v1/worker.pb.h"
#include "worker/measure/time_task.h"

namespace fusion {

// The task with those programs that are still to be measured, and where they stand in the whole. Not thread
// safe. The task and the result outlive it; the result has the task's programs, in its order, from the
// beginning on.
class TimeRemainder {
 public:
  TimeRemainder(const v1::TimeTask& task, v1::TimeResult* result);

  bool empty() const { return positions_.empty() && !unfused_; }

  // Returns what a runner is asked, with the device code that it runs and the values of inputs that come from
  // files. Errors are those of get_binary.
  absl::StatusOr<v1::RunnerRequest> Request(const BinaryGetter& get_binary,
                                            double copy_bytes_per_second) const;

  // Returns the result of the program `number` as the runner counts (kUnfusedProgram, or a position in the
  // request); null when there is none.
  v1::ProgramMeasurement* Measurement(int number) const;

  // Takes out the programs that have an outcome.
  void DropDecided();

  // Takes the last reply of a runner about all that is left.
  void Accept(const v1::TimeResult& timed) const;

  // Call it when nothing more can be measured.
  void Fail(v1::Outcome outcome, const std::string& message) const;

 private:
  const v1::TimeTask& task_;
  v1::TimeResult* const result_;
  std::vector<int> positions_;
  bool unfused_ = false;
};

}  // namespace fusion
