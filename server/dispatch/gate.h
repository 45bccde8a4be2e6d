// Lets an object end safely while timers and posted functions still refer to it.
#pragma once

#include <condition_variable>
#include <mutex>

namespace fusion {

// Functions that run on other threads share the gate, not the object: they touch the object only while they
// hold a Pass. Thread safe.
class Gate {
 public:
  // Converts to false when the gate is closed.
  class Pass {
   public:
    explicit Pass(Gate& gate) : gate_(gate), entered_(gate.Enter()) {}
    ~Pass() {
      if (entered_) gate_.Leave();
    }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    explicit operator bool() const { return entered_; }

   private:
    Gate& gate_;
    const bool entered_;
  };

  // Gives no new passes and waits until all are given back. Must not be called by a holder of a pass.
  void Close() {
    std::unique_lock<std::mutex> lock(mutex_);
    closed_ = true;
    all_left_.wait(lock, [&] { return inside_ == 0; });
  }

 private:
  bool Enter() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (closed_) return false;
    ++inside_;
    return true;
  }
  void Leave() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (--inside_ == 0) all_left_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable all_left_;
  bool closed_ = false;  // guarded by mutex_
  int inside_ = 0;       // guarded by mutex_
};

}  // namespace fusion
