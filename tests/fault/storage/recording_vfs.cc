#include "tests/fault/storage/recording_vfs.h"

#include <sqlite3.h>

#include <cstring>
#include <utility>

namespace fusion {
namespace {

RecordingVfs* g_recorder = nullptr;
sqlite3_vfs* g_real = nullptr;

// SQLite allocates szOsFile bytes: ours, then those of the real file.
struct File {
  sqlite3_file base;
  bool recorded = false;
  char name[512] = {};
  sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};
File* Of(sqlite3_file* file) { return reinterpret_cast<File*>(file); }
sqlite3_file* Real(sqlite3_file* file) { return Of(file)->real(); }

int Recorded(File* file, DiskStep step) {
  if (!file->recorded || g_recorder == nullptr) return SQLITE_OK;
  step.file = file->name;
  return g_recorder->Record(std::move(step));
}

int Close(sqlite3_file* file) { return Real(file)->pMethods->xClose(Real(file)); }
int Read(sqlite3_file* file, void* data, int bytes, sqlite3_int64 offset) {
  return Real(file)->pMethods->xRead(Real(file), data, bytes, offset);
}
int Write(sqlite3_file* file, const void* data, int bytes, sqlite3_int64 offset) {
  const int code = Recorded(
      Of(file), {DiskStep::Kind::kWrite, "", offset, std::string(static_cast<const char*>(data), bytes)});
  return code != SQLITE_OK ? code : Real(file)->pMethods->xWrite(Real(file), data, bytes, offset);
}
int Truncate(sqlite3_file* file, sqlite3_int64 size) {
  const int code = Recorded(Of(file), {DiskStep::Kind::kTruncate, "", size, ""});
  return code != SQLITE_OK ? code : Real(file)->pMethods->xTruncate(Real(file), size);
}
int Sync(sqlite3_file* file, int flags) {
  const int code = Recorded(Of(file), {DiskStep::Kind::kSync, "", 0, ""});
  return code != SQLITE_OK ? code : Real(file)->pMethods->xSync(Real(file), flags);
}
int FileSize(sqlite3_file* file, sqlite3_int64* size) {
  return Real(file)->pMethods->xFileSize(Real(file), size);
}
int Lock(sqlite3_file* file, int level) { return Real(file)->pMethods->xLock(Real(file), level); }
int Unlock(sqlite3_file* file, int level) { return Real(file)->pMethods->xUnlock(Real(file), level); }
int CheckReservedLock(sqlite3_file* file, int* locked) {
  return Real(file)->pMethods->xCheckReservedLock(Real(file), locked);
}
int FileControl(sqlite3_file* file, int operation, void* argument) {
  return Real(file)->pMethods->xFileControl(Real(file), operation, argument);
}
int SectorSize(sqlite3_file* file) { return Real(file)->pMethods->xSectorSize(Real(file)); }
int DeviceCharacteristics(sqlite3_file* file) {
  return Real(file)->pMethods->xDeviceCharacteristics(Real(file));
}
int ShmMap(sqlite3_file* file, int page, int size, int extend, void volatile** memory) {
  return Real(file)->pMethods->xShmMap(Real(file), page, size, extend, memory);
}
int ShmLock(sqlite3_file* file, int offset, int count, int flags) {
  return Real(file)->pMethods->xShmLock(Real(file), offset, count, flags);
}
void ShmBarrier(sqlite3_file* file) { Real(file)->pMethods->xShmBarrier(Real(file)); }
int ShmUnmap(sqlite3_file* file, int remove) { return Real(file)->pMethods->xShmUnmap(Real(file), remove); }

// Version 2: no memory maps of the database, which would go around us.
const sqlite3_io_methods kMethods = {2,
                                     Close,
                                     Read,
                                     Write,
                                     Truncate,
                                     Sync,
                                     FileSize,
                                     Lock,
                                     Unlock,
                                     CheckReservedLock,
                                     FileControl,
                                     SectorSize,
                                     DeviceCharacteristics,
                                     ShmMap,
                                     ShmLock,
                                     ShmBarrier,
                                     ShmUnmap,
                                     nullptr,
                                     nullptr};

int Open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  File* const ours = new (file) File;
  ours->base.pMethods = nullptr;
  const int code = g_real->xOpen(g_real, name, ours->real(), flags, out_flags);
  if (code != SQLITE_OK) return code;
  ours->recorded = (flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL)) != 0;
  if (name != nullptr) std::strncpy(ours->name, name, sizeof ours->name - 1);
  ours->base.pMethods = &kMethods;
  return SQLITE_OK;
}

sqlite3_vfs g_vfs = {};

}  // namespace

RecordingVfs::RecordingVfs() {
  sqlite3_initialize();
  g_recorder = this;
  g_real = sqlite3_vfs_find(nullptr);
  g_vfs = *g_real;
  g_vfs.zName = "recording";
  g_vfs.szOsFile = static_cast<int>(sizeof(File)) + g_real->szOsFile;
  g_vfs.pNext = nullptr;
  g_vfs.xOpen = Open;
  // All else is the real one's, which keeps what it needs in pAppData.
  sqlite3_vfs_register(&g_vfs, 1);
}

RecordingVfs::~RecordingVfs() {
  sqlite3_vfs_unregister(&g_vfs);
  sqlite3_vfs_register(g_real, 1);
  g_recorder = nullptr;
}

std::vector<DiskStep> RecordingVfs::Steps() const {
  std::lock_guard lock(mutex_);
  return steps_;
}

int64_t RecordingVfs::step_count() const {
  std::lock_guard lock(mutex_);
  return static_cast<int64_t>(steps_.size());
}

void RecordingVfs::set_fault(std::function<int(const DiskStep&)> fault) {
  std::lock_guard lock(mutex_);
  fault_ = std::move(fault);
}

int RecordingVfs::Record(DiskStep step) {
  std::lock_guard lock(mutex_);
  if (fault_)
    if (const int code = fault_(step); code != SQLITE_OK) return code;
  steps_.push_back(std::move(step));
  return SQLITE_OK;
}

}  // namespace fusion
