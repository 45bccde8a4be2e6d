// Waits of tests for what other threads and processes do.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace fusion {

// Asks until `happened` says true, for a minute at most, and returns what it said last.
inline bool Eventually(const std::function<bool()>& happened) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!happened()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace fusion
