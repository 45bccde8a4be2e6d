// Where the dispatcher takes the time of day from, so that tests can turn it forward.
#pragma once

#include <chrono>

#include "db/store/records.h"

namespace fusion {

// Thread safe. Leases and contacts are judged by this clock; how long a call is held is not.
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
