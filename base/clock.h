// The time of day, and clocks that tests can turn forward.
#pragma once

#include <chrono>

namespace fusion {

// Time of day, UTC, to the microsecond.
using Timestamp = std::chrono::sys_time<std::chrono::microseconds>;
// Reads the system's clock.
inline Timestamp TimeOfDay() {
  return std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
}

// Thread safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Timestamp Now() const = 0;
};

// The time of day at which it was made, and from there on the time that has passed: somebody who sets the
// machine's clock changes no lease.
class SystemClock final : public Clock {
 public:
  Timestamp Now() const override {
    return begin_ + std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() -
                                                                          steady_begin_);
  }

 private:
  const std::chrono::steady_clock::time_point steady_begin_ = std::chrono::steady_clock::now();
  const Timestamp begin_ = TimeOfDay();
};

}  // namespace fusion
