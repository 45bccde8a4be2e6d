// Limits how often somebody may do something.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace fusion {

struct RateLimit {
  double per_second = 0;
  double burst = 0;  // at once, after a rest
};

// Each key has a bucket, which fills at `per_second` up to `burst`. Thread safe.
class RateLimiter {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Takes one from the bucket of the key and returns 0, or else says how long it is until there is one.
  std::chrono::duration<double> Take(const std::string& key, const RateLimit& limit, Time now);

 private:
  struct Bucket {
    double amount = 0;
    Time filled{};
    double seconds_to_fill = 0;
  };
  // Forgets the keys that are full again: they need no bucket.
  void ForgetFull(Time now);

  std::mutex mutex_;
  std::map<std::string, Bucket> buckets_;  // guarded by mutex_
  size_t forget_above_ = 1024;             // guarded by mutex_
};

// Limits how many of something each key has at a time. Thread safe.
class ConcurrencyLimiter {
 public:
  ConcurrencyLimiter() : counts_(std::make_shared<Counts>()) {}
  // Gives one to the key, until the ticket is destroyed, which may be after the limiter. Null: the key has
  // `most` already.
  std::shared_ptr<void> Enter(const std::string& key, int most);

 private:
  struct Counts {
    std::mutex mutex;
    std::map<std::string, int> of;  // guarded by mutex; above 0
  };
  const std::shared_ptr<Counts> counts_;
};

}  // namespace fusion
