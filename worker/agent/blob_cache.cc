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
  while (bytes_ > capacity_bytes_) Forget(index_.find(entries_.back().digest));
}

bool BlobCache::Has(const std::string& digest) {
  std::lock_guard lock(mutex_);
  return index_.count(digest) > 0;
}

void BlobCache::Remove(const std::string& digest) {
  std::lock_guard lock(mutex_);
  if (const auto found = index_.find(digest); found != index_.end()) Forget(found);
}

void BlobCache::Forget(Index::iterator entry) {
  bytes_ -= static_cast<int64_t>(entry->second->content.size());
  entries_.erase(entry->second);
  index_.erase(entry);
}

}  // namespace fusion
