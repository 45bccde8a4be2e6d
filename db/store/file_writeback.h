// FileWriteback writes a file's changes to the disk a piece at a time, so that others who wait for the disk
// meanwhile wait for one piece. Private to db/store.
#pragma once

#include <cstdint>
#include <string>

namespace fusion {

// Opens a file that SQLite has open too. When this object ends, so do the locks that SQLite has on the file
// in this process (POSIX: closing any descriptor of a file does that): end all connections before.
class FileWriteback {
 public:
  // A file that cannot be opened is no error here: the code that synchronises it says why.
  explicit FileWriteback(const std::string& path);
  ~FileWriteback();
  FileWriteback(const FileWriteback&) = delete;
  FileWriteback& operator=(const FileWriteback&) = delete;

  // Makes the kernel write what it holds of the file, and waits. This promises nothing, as disks have caches:
  // synchronise the file afterwards, which then has little left to write.
  void Write();

 private:
  const int file_;  // -1: none
};

}  // namespace fusion
