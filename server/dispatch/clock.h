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

class SystemClock final : public Clock {
 public:
  Timestamp Now() const override {
    return std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
  }
};

}  // namespace fusion
