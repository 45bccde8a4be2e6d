// Device code, and values of inputs, by digest, in memory: what this worker built or fetched lately.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace fusion {

// Forgets the blob that was used longest ago when there are too many bytes. Thread safe.
class BlobCache {
 public:
  explicit BlobCache(int64_t capacity_bytes) : capacity_bytes_(capacity_bytes) {}

  std::optional<std::string> Get(const std::string& digest);
  bool Has(const std::string& digest);
  // A blob larger than the capacity is not kept.
  void Put(const std::string& digest, const std::string& content);
  void Remove(const std::string& digest);

 private:
  struct Entry {
    std::string digest;
    std::string content;
  };
  using Index = std::map<std::string, std::list<Entry>::iterator>;
  void Forget(Index::iterator entry);  // mutex_ is held

  const int64_t capacity_bytes_;
  std::mutex mutex_;
  std::list<Entry> entries_;  // guarded by mutex_; last used first
  Index index_;               // guarded by mutex_
  int64_t bytes_ = 0;         // guarded by mutex_
};

}  // namespace fusion
