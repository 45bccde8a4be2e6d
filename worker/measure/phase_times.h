// Where the time of a timing goes: a runner is in one phase at a time.
#pragma once

#include <array>
#include <chrono>
#include <utility>

#include "fusion/v1/runner.pb.h"

namespace fusion {

// Not thread safe.
class PhaseTimes {
 public:
  static constexpr int kPhases = v1::TimingPhase_MAX + 1;

  // Ends the phase that it is in; returns that one.
  v1::TimingPhase Enter(v1::TimingPhase phase) {
    const auto now = std::chrono::steady_clock::now();
    seconds_[phase_] += std::chrono::duration<double>(now - since_).count();
    since_ = now;
    return std::exchange(phase_, phase);
  }
  // Seconds that were counted under one phase, or will be when it ends, belong to another.
  void Move(v1::TimingPhase from, v1::TimingPhase to, double seconds) {
    seconds_[from] -= seconds;
    seconds_[to] += seconds;
  }
  // Begins anew, in TIMING_OTHER.
  void Reset() {
    seconds_ = {};
    phase_ = v1::TIMING_OTHER;
    since_ = std::chrono::steady_clock::now();
  }
  // Seconds of the phases that have ended.
  const std::array<double, kPhases>& seconds() const { return seconds_; }

 private:
  std::array<double, kPhases> seconds_{};
  v1::TimingPhase phase_ = v1::TIMING_OTHER;
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

// The runner is in the phase as long as this object lives, then in the one before.
class InPhase {
 public:
  // `times` may be null.
  InPhase(PhaseTimes* times, v1::TimingPhase phase) : times_(times) {
    if (times_ != nullptr) before_ = times_->Enter(phase);
  }
  ~InPhase() {
    if (times_ != nullptr) times_->Enter(before_);
  }
  InPhase(const InPhase&) = delete;
  InPhase& operator=(const InPhase&) = delete;

 private:
  PhaseTimes* const times_;
  v1::TimingPhase before_ = v1::TIMING_OTHER;
};

}  // namespace fusion
