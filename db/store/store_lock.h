// The lock that keeps two processes from running one queue. Private to db/store.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/file_lock.h"

namespace fusion {

// Holds a FileLock. The file holds the number of the
// owning process, for messages, and how far the owner got: a word behind the number says that the database is
// open, and another word, in place of both, that it was closed in order.
class StoreLock {
 public:
  // UNAVAILABLE: another process owns the lock; the message names its number.
  static absl::StatusOr<std::unique_ptr<StoreLock>> Acquire(const std::string& path);
  // An owner left the database in this state.
  enum class Left {
    kNever,   // no process is known to have had it open
    kClosed,  // the owner closed it in order
    kOpen,    // the owner ended without closing it
    kUnclear  // the owner ended before the database was open, or its version did not tell
  };
  // Returns how the last owner before this one left the database.
  Left left() const { return left_; }
  // Returns how the last owner left the database, according to a file that nobody holds.
  static Left LeftIn(const std::string& path);
  // Call NoteOpen when the database is complete, and NoteClosed when all connections to it have ended.
  absl::Status NoteOpen();
  absl::Status NoteClosed();
  StoreLock(const StoreLock&) = delete;
  StoreLock& operator=(const StoreLock&) = delete;

 private:
  explicit StoreLock(std::unique_ptr<FileLock> lock) : lock_(std::move(lock)) {}
  absl::Status WriteText(const std::string& text);
  int file() const { return lock_->file(); }
  const std::unique_ptr<FileLock> lock_;
  Left left_ = Left::kNever;
};

}  // namespace fusion
