// A search computes for milliseconds on end, on processors that it shares with the threads that answer
// programs.
#pragma once

#include <chrono>
#include <thread>

namespace fusion {

// A search calls this at least every half a millisecond. A thread that has become ready may have to wait
// until the one that runs has had its slice, which is some 3 ms on Linux: so long a report would lie there.
// At most every 100 us the search goes behind the threads that wait.
inline void LetOthersRun() {
  using Clock = std::chrono::steady_clock;
  thread_local Clock::time_point last;
  if (const Clock::time_point now = Clock::now(); now - last > std::chrono::microseconds(100)) {
    std::this_thread::yield();
    last = Clock::now();
  }
}

}  // namespace fusion
