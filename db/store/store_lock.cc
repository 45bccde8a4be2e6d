#include "db/store/store_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace fusion {

absl::StatusOr<std::unique_ptr<StoreLock>> StoreLock::Acquire(const std::string& path) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open the lock file ", path));
  std::unique_ptr<StoreLock> lock(new StoreLock(file));
  if (flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return absl::ErrnoToStatus(errno, absl::StrCat("cannot lock ", path));
    char owner[32] = {};
    const ssize_t length = pread(file, owner, sizeof(owner) - 1, 0);
    return absl::UnavailableError(absl::StrCat(
        "the store is in use by ",
        length > 0 ? absl::StrCat("process ", absl::StripAsciiWhitespace(owner)) : "another process",
        " (it holds ", path, "); stop that process, or use another data directory"));
  }
  const std::string owner = absl::StrCat(getpid(), "\n");
  if (ftruncate(file, 0) != 0 ||
      pwrite(file, owner.data(), owner.size(), 0) != static_cast<ssize_t>(owner.size())) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot write the lock file ", path));
  }
  return lock;
}

StoreLock::~StoreLock() { close(file_); }

}  // namespace fusion
