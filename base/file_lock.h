// A lock between processes.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace fusion {

// Holds an flock(2) on a file, which is created when absent and stays. The system ends the lock with the
// process.
class FileLock {
 public:
  // Does not wait. UNAVAILABLE: somebody holds the lock. Other statuses are those of open(2).
  static absl::StatusOr<std::unique_ptr<FileLock>> Acquire(const std::string& path);
  // Returns whether somebody holds the lock. Whoever tries to acquire it at this moment may be refused.
  static bool IsHeld(const std::string& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  int file() const { return file_; }  // open for reading and writing

 private:
  explicit FileLock(int file) : file_(file) {}
  const int file_;
};

}  // namespace fusion
