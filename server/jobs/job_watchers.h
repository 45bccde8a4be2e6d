// Wakes callers that wait for new events of a job.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace fusion {

// Thread safe.
class JobWatchers {
 public:
  // Wakes until it is destroyed. A wake-up that began before may still be running after the destructor
  // returns.
  class Subscription {
   public:
    ~Subscription();
    Subscription(const Subscription&) = delete;
    Subscription& operator=(const Subscription&) = delete;

   private:
    friend class JobWatchers;
    Subscription(JobWatchers* watchers, std::string job, int64_t id);
    JobWatchers* watchers_;
    std::string job_;
    int64_t id_;
  };

  // `wake` is called, from any thread and without a lock held, after every Notify(job) and once on Close().
  // It must not block.
  std::unique_ptr<Subscription> Subscribe(const std::string& job, std::function<void()> wake);
  void Notify(const std::string& job);
  // The server is going down: wakes everyone.
  void Close();
  bool closed() const;

 private:
  mutable std::mutex mutex_;
  bool closed_ = false;                                                       // guarded by mutex_
  int64_t next_id_ = 0;                                                       // guarded by mutex_
  std::map<std::string, std::map<int64_t, std::function<void()>>> watchers_;  // guarded by mutex_
};

}  // namespace fusion
