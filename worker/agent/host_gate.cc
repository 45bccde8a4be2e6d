#include "worker/agent/host_gate.h"

#include <algorithm>

namespace fusion {

HostGate::Pass HostGate::EnterShared(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  ++waiting_shared_;
  const bool entered =
      changed_.wait(lock, stop, [&] { return !alone_ && (waiting_alone_ == 0 || admitted_ > 0); });
  --waiting_shared_;
  admitted_ = entered ? std::max(admitted_ - 1, 0) : std::min(admitted_, waiting_shared_);
  if (entered) ++shared_;
  changed_.notify_all();
  return entered ? Pass(this, false) : Pass();
}

HostGate::Pass HostGate::EnterAlone(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  ++waiting_alone_;
  const bool entered = changed_.wait(lock, stop, [&] { return !alone_ && shared_ == 0 && admitted_ == 0; });
  --waiting_alone_;
  if (entered) alone_ = true;
  changed_.notify_all();
  return entered ? Pass(this, true) : Pass();
}

void HostGate::Leave(bool alone) {
  std::lock_guard lock(mutex_);
  if (alone) {
    alone_ = false;
    admitted_ = waiting_shared_;
  } else {
    --shared_;
  }
  changed_.notify_all();
}

}  // namespace fusion
