// The lock that keeps two processes from running one queue. Private to db/store.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace fusion {

// Holds an flock(2) on a file; the file holds the number of the owning process, for messages. The system ends
// the lock with the process.
class StoreLock {
 public:
  // UNAVAILABLE: another owner, named by its process number.
  static absl::StatusOr<std::unique_ptr<StoreLock>> Acquire(const std::string& path);
  ~StoreLock();
  StoreLock(const StoreLock&) = delete;
  StoreLock& operator=(const StoreLock&) = delete;

 private:
  explicit StoreLock(int file) : file_(file) {}
  const int file_;
};

}  // namespace fusion
