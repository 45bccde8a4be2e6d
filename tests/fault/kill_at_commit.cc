// A library for LD_PRELOAD: its process ends, as by SIGKILL, at the Nth commit to a write-ahead log of
// SQLite, counted from the start of the process. For tests alone: without the first variable below it does
// nothing, and no program of ours knows of it.
//
//   FUSION_KILL_AT_COMMIT   N, from 1
//   FUSION_KILL_WHEN        before: the commit is not in the log; after: it is, and safe, and nobody has been
//   told;
//                           lose: the commit and what follows are not written, the process goes on for 80
//                           more (a test of the test)
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace {

constexpr int kLostCommits = 80;
constexpr size_t kFrameHeaderBytes = 24;

const int kCommit =
    std::getenv("FUSION_KILL_AT_COMMIT") ? std::atoi(std::getenv("FUSION_KILL_AT_COMMIT")) : 0;
const std::string_view kWhen = std::getenv("FUSION_KILL_WHEN") ? std::getenv("FUSION_KILL_WHEN") : "";
std::atomic<int> g_commits = 0;
std::atomic<bool> g_armed = false;  // the commit is being written

bool IsLog(int file) {
  char link[64], path[1024];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t size = readlink(link, path, sizeof path);
  return size > 0 && std::string_view(path, size).ends_with("-wal");
}

[[noreturn]] void End() {
  dprintf(STDERR_FILENO, "kill_at_commit: %s commit %d\n", kWhen.data(), kCommit);
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

template <typename Function>
Function Next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

// The header of a frame: its second word is not 0 in the last one of a commit.
bool IsCommit(const void* data, size_t bytes) {
  static const unsigned char kNone[4] = {};
  return bytes == kFrameHeaderBytes &&
         std::memcmp(static_cast<const unsigned char*>(data) + 4, kNone, 4) != 0;
}

// False: the bytes are not to be written.
bool BeforeWrite(int file, const void* data, size_t bytes) {
  if (kCommit <= 0) return true;
  if (IsCommit(data, bytes) && IsLog(file)) {
    const int commit = ++g_commits;
    if (kWhen == "before" && commit == kCommit) End();
    if (kWhen == "after" && commit == kCommit) g_armed = true;
    if (kWhen == "lose" && commit == kCommit + kLostCommits) End();
  }
  return kWhen != "lose" || g_commits < kCommit || !IsLog(file);
}

int AfterSync(int file, int code) {
  if (g_armed && IsLog(file)) End();
  return code;
}

}  // namespace

extern "C" {

ssize_t pwrite64(int file, const void* data, size_t bytes, off64_t offset) {
  static const auto real = Next<ssize_t (*)(int, const void*, size_t, off64_t)>("pwrite64");
  return BeforeWrite(file, data, bytes) ? real(file, data, bytes, offset) : static_cast<ssize_t>(bytes);
}

ssize_t pwrite(int file, const void* data, size_t bytes, off_t offset) {
  static const auto real = Next<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite");
  return BeforeWrite(file, data, bytes) ? real(file, data, bytes, offset) : static_cast<ssize_t>(bytes);
}

int fdatasync(int file) {
  static const auto real = Next<int (*)(int)>("fdatasync");
  return AfterSync(file, real(file));
}

int fsync(int file) {
  static const auto real = Next<int (*)(int)>("fsync");
  return AfterSync(file, real(file));
}

}  // extern "C"
