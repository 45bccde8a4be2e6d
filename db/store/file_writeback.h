// A file's changes written to the disk a piece at a time, so that whoever waits for the disk meanwhile waits
// for one piece. Private to db/store.
#pragma once

#include <cstdint>
#include <string>

namespace fusion {

// A file that SQLite has open too. When this ends, so do the locks that SQLite has on the file in this
// process (POSIX: closing any descriptor of a file does that): end all connections before.
class FileWriteback {
 public:
  // A file that cannot be opened is left to whoever synchronises it, who says why.
  explicit FileWriteback(const std::string& path);
  ~FileWriteback();
  FileWriteback(const FileWriteback&) = delete;
  FileWriteback& operator=(const FileWriteback&) = delete;

  // Has the kernel write what it holds of the file, and waits. Promises nothing, as disks have caches:
  // synchronise the file then, which has little left to write.
  void Write();

 private:
  const int file_;  // -1: none
};

}  // namespace fusion
