#include "server/identity/rate_limiter.h"

#include <algorithm>

namespace fusion {

std::chrono::duration<double> RateLimiter::Take(const std::string& key, const RateLimit& limit, Time now) {
  std::lock_guard lock(mutex_);
  if (buckets_.size() >= forget_above_) ForgetFull(now);
  auto [entry, is_new] = buckets_.try_emplace(key);
  Bucket& bucket = entry->second;
  if (is_new) {
    bucket.amount = limit.burst;
  } else {
    const std::chrono::duration<double> passed = now - bucket.filled;
    bucket.amount = std::min(limit.burst, bucket.amount + std::max(passed.count(), 0.0) * limit.per_second);
  }
  bucket.filled = now;
  if (bucket.amount >= 1) {
    bucket.amount -= 1;
    bucket.seconds_to_fill = (limit.burst - bucket.amount) / limit.per_second;
    return std::chrono::duration<double>(0);
  }
  bucket.seconds_to_fill = (limit.burst - bucket.amount) / limit.per_second;
  return std::chrono::duration<double>((1 - bucket.amount) / limit.per_second);
}

void RateLimiter::ForgetFull(Time now) {
  std::erase_if(buckets_, [&](const auto& entry) {
    return std::chrono::duration<double>(now - entry.second.filled).count() >= entry.second.seconds_to_fill;
  });
  forget_above_ = std::max<size_t>(1024, 2 * buckets_.size());
}

std::shared_ptr<void> ConcurrencyLimiter::Enter(const std::string& key, int most) {
  std::lock_guard lock(counts_->mutex);
  int& count = counts_->of[key];
  if (count >= most) {
    if (count == 0) counts_->of.erase(key);
    return nullptr;
  }
  ++count;
  return std::shared_ptr<void>(static_cast<void*>(counts_.get()), [counts = counts_, key](void*) {
    std::lock_guard lock(counts->mutex);
    if (--counts->of[key] == 0) counts->of.erase(key);
  });
}

}  // namespace fusion
