// A thread that makes something while the program goes on, for what takes tenths of a second to begin.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "client/partition/own_threads.h"

namespace fusion {

template <class Thing>
class BackgroundStart {
 public:
  // Returns null where it cannot be made.
  using Make = std::function<std::unique_ptr<Thing>()>;

  BackgroundStart() = default;
  BackgroundStart(const BackgroundStart&) = delete;
  BackgroundStart& operator=(const BackgroundStart&) = delete;
  ~BackgroundStart() {
    if (thread_.joinable() && IsLost()) thread_.detach();
    Join();
  }

  // One thread at a time calls these. Begin does nothing but the first time.
  void Begin(const Make& make) {
    if (state_ != State::kNotBegun) return;
    forks_ = ForksUntilNow();
    std::lock_guard<std::mutex> lock(mutex_);
    State expected = State::kNotBegun;
    if (!state_.compare_exchange_strong(expected, State::kBegun)) return;
    const SignalsForOthers blocked;
    try {
      thread_ = std::thread([this, make] {
        std::unique_ptr<Thing> thing;
        try {
          thing = make();
        } catch (const std::exception&) {
          // Without memory there is none.
        }
        std::lock_guard<std::mutex> done(mutex_);
        thing_ = std::move(thing);
        state_ = State::kDone;
        is_done_.notify_all();
      });
    } catch (const std::exception&) {
      state_ = State::kDone;  // the system gives no more threads
    }
  }
  // It has begun in a parent of this process: nothing else may be called.
  bool IsLost() const {
    const int forks = forks_;
    return forks >= 0 && forks != ForksUntilNow();
  }
  // Waits until the thing is there, or is known not to be.
  void Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    is_done_.wait(lock, [this] { return state_ != State::kBegun; });
  }
  bool IsDone() const { return state_ == State::kDone; }
  // Returns the thing once it is there, the first time; null otherwise.
  std::unique_ptr<Thing> Take() {
    if (state_ != State::kDone) return nullptr;
    std::lock_guard<std::mutex> lock(mutex_);
    Join();
    return std::move(thing_);
  }

  // The thing is not needed any more: what makes it may leave out what takes long.
  bool IsEnding() const { return is_ending_; }
  // The process ends, which what is about to begin may not survive: waits for it, but not for ever. Nothing
  // begins after. Any thread may call it.
  void End() {
    if (IsLost()) return;
    is_ending_ = true;
    std::unique_lock<std::mutex> lock(mutex_);
    State expected = State::kNotBegun;
    state_.compare_exchange_strong(expected, State::kDone);
    is_done_.wait_for(lock, kLongestStart, [this] { return state_ == State::kDone; });
    if (state_ == State::kDone) Join();
  }

 private:
  enum class State { kNotBegun, kBegun, kDone };

  // Much longer than a driver takes to begin.
  static constexpr std::chrono::seconds kLongestStart{10};

  void Join() {
    if (thread_.joinable()) thread_.join();
  }

  std::atomic<int> forks_{-1};  // of the process and its parents when it began; -1: it has not
  std::atomic<State> state_{State::kNotBegun};
  std::atomic<bool> is_ending_{false};
  std::mutex mutex_;
  std::condition_variable is_done_;
  // mutex_ guards these fields.
  std::thread thread_;
  std::unique_ptr<Thing> thing_;
};

}  // namespace fusion
