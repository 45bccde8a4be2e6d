// Where threads of a test, its pipelines above all, wait for it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace fusion {

class Barrier {
 public:
  void Open() {
    std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  // False: it was not opened for a minute.
  bool Wait() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60), [this] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

}  // namespace fusion
