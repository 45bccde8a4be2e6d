// Time that a test makes pass: what happens, happens in the order of its time, in one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "base/clock.h"

namespace fusion {

class EventLoop {
 public:
  using Duration = std::chrono::microseconds;
  static Duration Seconds(double seconds) { return Duration(static_cast<int64_t>(seconds * 1e6)); }

  Duration now() const { return now_; }
  // Events of one moment happen in the order in which they were asked for.
  void After(Duration delay, std::function<void()> event) {
    events_.emplace(std::pair(now_ + delay, ++asked_), std::move(event));
  }
  // The next event, if it is not later than `until`.
  bool RunOne(Duration until) {
    if (events_.empty() || events_.begin()->first.first > until) return false;
    auto next = events_.extract(events_.begin());
    now_ = next.key().first;
    next.mapped()();
    return true;
  }

 private:
  Duration now_{0};
  int64_t asked_ = 0;
  std::map<std::pair<Duration, int64_t>, std::function<void()>> events_;
};

// The server's time of day, which may be wrong by `skew`.
class SimulatedClock final : public Clock {
 public:
  explicit SimulatedClock(const EventLoop& loop) : loop_(loop) {}
  Timestamp Now() const override { return Timestamp(std::chrono::hours(500000) + loop_.now() + skew_); }
  void set_skew(EventLoop::Duration skew) { skew_ = skew; }

 private:
  const EventLoop& loop_;
  EventLoop::Duration skew_{0};
};

}  // namespace fusion
