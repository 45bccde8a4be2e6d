#include "db/store/store_lock.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

constexpr char kOpen[] = "open\n", kClosed[] = "closed\n";

std::string Text(int file) {
  char text[64] = {};
  const ssize_t length = pread(file, text, sizeof(text) - 1, 0);
  return length > 0 ? std::string(text, length) : "";
}

std::string TextIn(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return "";
  std::string text = Text(file);
  close(file);
  return text;
}

// The number of the process that holds the lock; "": it has not written it yet.
std::string Owner(const std::string& path) {
  const std::string text = TextIn(path);
  return text == kClosed ? "" : text.substr(0, text.find('\n'));
}

StoreLock::Left LeftBy(const std::string& last) {
  if (last.empty()) return StoreLock::Left::kNever;
  if (last == kClosed) return StoreLock::Left::kClosed;
  return absl::EndsWith(last, kOpen) ? StoreLock::Left::kOpen : StoreLock::Left::kUnclear;
}

}  // namespace

absl::StatusOr<std::unique_ptr<StoreLock>> StoreLock::Acquire(const std::string& path) {
  absl::StatusOr<std::unique_ptr<FileLock>> file = FileLock::Acquire(path);
  if (absl::IsUnavailable(file.status())) {
    const std::string owner = Owner(path);
    return absl::UnavailableError(absl::StrCat(
        "the store is in use by ", owner.empty() ? "another process" : absl::StrCat("process ", owner),
        " (it holds ", path, "); stop that process, or use another data directory"));
  }
  if (!file.ok()) return file.status();
  std::unique_ptr<StoreLock> lock(new StoreLock(*std::move(file)));
  lock->left_ = LeftBy(Text(lock->file()));
  // The word stays until the database is open or closed: whoever ends before that leaves it as it was.
  const absl::Status written =
      lock->WriteText(absl::StrCat(getpid(), "\n", lock->left_ == Left::kOpen ? kOpen : ""));
  if (!written.ok()) return written;
  return lock;
}

StoreLock::Left StoreLock::LeftIn(const std::string& path) { return LeftBy(TextIn(path)); }

absl::Status StoreLock::NoteOpen() { return WriteText(absl::StrCat(getpid(), "\n", kOpen)); }
absl::Status StoreLock::NoteClosed() { return WriteText(kClosed); }

absl::Status StoreLock::WriteText(const std::string& text) {
  // In place first, so that a full disk has room for it.
  if (pwrite(file(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()) ||
      ftruncate(file(), static_cast<off_t>(text.size())) != 0)
    return absl::ErrnoToStatus(errno, "cannot write the lock file of the store");
  return absl::OkStatus();
}

}  // namespace fusion
