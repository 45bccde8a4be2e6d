// SQLite's way to the disk, with a record of everything that it did there, and with faults on demand.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace fusion {

// One step on the way to the disk, of the database or of its write-ahead log.
struct DiskStep {
  enum class Kind { kWrite, kTruncate, kSync } kind = Kind::kWrite;
  std::string file;
  int64_t offset = 0;  // of a write; the new size of a truncated file
  std::string data;
};

// The default of all SQLite databases opened while it lives; there is one at a time. Thread safe.
class RecordingVfs {
 public:
  RecordingVfs();
  ~RecordingVfs();
  RecordingVfs(const RecordingVfs&) = delete;
  RecordingVfs& operator=(const RecordingVfs&) = delete;

  // All steps so far.
  std::vector<DiskStep> Steps() const;
  int64_t step_count() const;

  // Asked before each step: an SQLite code other than 0 (SQLITE_FULL, SQLITE_IOERR_WRITE ...) is what SQLite
  // gets instead.
  void set_fault(std::function<int(const DiskStep&)> fault);

  // For the file methods.
  int Record(DiskStep step);

 private:
  mutable std::mutex mutex_;
  std::vector<DiskStep> steps_;                // guarded by mutex_
  std::function<int(const DiskStep&)> fault_;  // guarded by mutex_
};

}  // namespace fusion
