// The lock that keeps two processes from running one queue. Private to db/store.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace fusion {

// Holds an flock(2) on a file. The system ends the lock with the process. The file holds the number of the
// owning process, for messages, and how far the owner got: a word behind the number says that the database is
// open, and another one in its place that it was closed in order.
class StoreLock {
 public:
  // UNAVAILABLE: another owner, named by its process number.
  static absl::StatusOr<std::unique_ptr<StoreLock>> Acquire(const std::string& path);
  ~StoreLock();
  // How an owner left the database.
  enum class Left {
    kNever,   // nobody is known to have had it open
    kClosed,  // in order
    kOpen,    // the owner ended without closing it
    kUnclear  // the owner ended before it was open, or was of a version that did not tell
  };
  // The last one before this.
  Left left() const { return left_; }
  // The last one, as the file says that nobody holds.
  static Left LeftIn(const std::string& path);
  static bool IsHeld(const std::string& path);
  // To be called when the database is complete, and when all connections to it have ended.
  absl::Status NoteOpen();
  absl::Status NoteClosed();
  StoreLock(const StoreLock&) = delete;
  StoreLock& operator=(const StoreLock&) = delete;

 private:
  explicit StoreLock(int file) : file_(file) {}
  absl::Status WriteText(const std::string& text);
  const int file_;
  Left left_ = Left::kNever;
};

}  // namespace fusion
