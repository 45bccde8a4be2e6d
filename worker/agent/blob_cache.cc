#include "worker/agent/blob_cache.h"

namespace fusion {

std::optional<std::string> BlobCache::Get(const std::string& digest) {
  std::lock_guard lock(mutex_);
  const auto found = index_.find(digest);
  if (found == index_.end()) return std::nullopt;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->content;
}

void BlobCache::Put(const std::string& digest, const std::string& content) {
  std::lock_guard lock(mutex_);
  if (static_cast<int64_t>(content.size()) > capacity_bytes_ || index_.count(digest) > 0) return;
  entries_.push_front({digest, content});
  index_[digest] = entries_.begin();
  bytes_ += static_cast<int64_t>(content.size());
  while (bytes_ > capacity_bytes_) {
    bytes_ -= static_cast<int64_t>(entries_.back().content.size());
    index_.erase(entries_.back().digest);
    entries_.pop_back();
  }
}

}  // namespace fusion
