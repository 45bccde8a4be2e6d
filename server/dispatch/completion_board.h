// Tells threads that wait for tasks when one has ended.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace fusion {

// Carries task keys only; what became of a task is in the store. Thread safe.
class CompletionBoard {
 public:
  // One waiting thread's view.
  class Watch {
   public:
    // Returns the keys that have ended since the last call, in the order in which they ended. Returns early,
    // perhaps with none, when interrupted; an interruption before the call counts.
    std::vector<std::string> Wait(std::chrono::milliseconds at_most);
    void Interrupt();

   private:
    friend class CompletionBoard;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::string> ended_;  // guarded by mutex_
    bool interrupted_ = false;        // guarded by mutex_
  };

  // Keys that end from now on are reported. The watch ends when its last owner drops it.
  std::shared_ptr<Watch> Open(const std::vector<std::string>& keys);
  void Ended(const std::string& key);
  void InterruptAll();

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::vector<std::weak_ptr<Watch>>> watches_;  // guarded by mutex_
};

}  // namespace fusion
