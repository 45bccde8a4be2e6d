#include "db/store/sqlite_store.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "db/store/log_check.h"
#include "db/store/migrations.h"

namespace fusion {
namespace {

// This is the cache of the writing connection, the only one that stays good: readers begin anew after every
// change. Many commits look at every page of it (SQLite 3.40), so that a larger one makes them slower.
constexpr int kWriterCacheKibibytes = 16 << 10;
// The log grows to 256 MiB when nobody calls Checkpoint.
constexpr int kMostLogPages = 64 << 10;

}  // namespace

absl::StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const std::string& path, const StoreOptions& options) {
  FUSION_ASSIGN_OR_RETURN(std::unique_ptr<SqliteStore> store, SqliteStore::Open(path, options));
  return std::unique_ptr<Store>(std::move(store));
}

absl::StatusOr<std::unique_ptr<SqliteStore>> SqliteStore::Open(const std::string& path,
                                                               const StoreOptions& options) {
  if (path.empty() || path.front() == ':' || path.rfind("file:", 0) == 0) {
    return absl::InvalidArgumentError(absl::StrCat("the store needs the name of a file, not '", path, "'"));
  }
  if (options.readers < 1)
    return absl::InvalidArgumentError("the store needs at least one reading connection");
  std::unique_ptr<SqliteStore> store(new SqliteStore(path, options));
  if (options.exclusive) {
    FUSION_ASSIGN_OR_RETURN(std::unique_ptr<StoreLock> lock, StoreLock::Acquire(path + ".lock"));
    store->lock_ = std::move(lock);
    FUSION_RETURN_IF_ERROR(store->CheckFiles());
  }

  FUSION_ASSIGN_OR_RETURN(std::unique_ptr<Database> writer,
                          Database::Open(path, Database::Mode::kReadWrite, options.busy_timeout));
  store->writer_ = std::move(writer);
  // synchronous = FULL: a transaction that returned is on the disk even when the power fails.
  // temp_store: what SQLite keeps to undo one statement would else be a file on the disk, for every
  // transaction anew.
  absl::Status prepared =
      store->writer_->Execute(absl::StrCat("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA "
                                           "foreign_keys = ON; PRAGMA temp_store = MEMORY; "
                                           "PRAGMA cache_size = -",
                                           kWriterCacheKibibytes));
  if (!prepared.ok()) return prepared;
  if (options.max_bytes > 0) {
    FUSION_ASSIGN_OR_RETURN(int64_t page_bytes, store->writer_->Integer("PRAGMA page_size"));
    prepared = store->writer_->Execute(
        absl::StrCat("PRAGMA max_page_count = ", std::max<int64_t>(1, options.max_bytes / page_bytes)));
    if (!prepared.ok()) return prepared;
  }
  FUSION_RETURN_IF_ERROR(store->QuickCheck());
  prepared = Migrate(*store->writer_, EmbeddedMigrations());
  if (!prepared.ok()) return prepared;

  store->writes_.Open(store->writer_.get());
  store->writer_->WatchLog(kMostLogPages);
  FUSION_ASSIGN_OR_RETURN(std::unique_ptr<Database> checkpointer,
                          Database::Open(path, Database::Mode::kReadWrite, options.busy_timeout));
  store->checkpointer_ = std::move(checkpointer);
  store->writeback_ = std::make_unique<FileWriteback>(path);
  // It never commits anything; this is how it synchronises.
  prepared = store->checkpointer_->Execute("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0");
  if (!prepared.ok()) return prepared;

  for (int i = 0; i < options.readers; ++i) {
    FUSION_ASSIGN_OR_RETURN(std::unique_ptr<Database> reader,
                            Database::Open(path, Database::Mode::kReadOnly, options.busy_timeout));
    store->readers_.push_back(std::move(reader));
  }
  if (store->lock_ != nullptr) FUSION_RETURN_IF_ERROR(store->lock_->NoteOpen());
  store->opened_ = true;
  return store;
}

SqliteStore::~SqliteStore() {
  readers_.clear();
  checkpointer_.reset();
  writer_.reset();
  // The last connection moves the log into the file and removes it. A log that is still there is somebody
  // else's too, or could not be moved.
  std::error_code error;
  if (lock_ != nullptr && opened_ && !std::filesystem::exists(path_ + "-wal", error) && !error)
    lock_->NoteClosed().IgnoreError();  // then it is checked without need
}

absl::Status SqliteStore::CheckFiles() const {
  std::error_code error;
  const bool there = std::filesystem::exists(path_, error);
  const bool empty = !there || std::filesystem::file_size(path_, error) == 0;
  const StoreLock::Left left = lock_->left();
  if (there && empty && (left == StoreLock::Left::kOpen || left == StoreLock::Left::kClosed))
    return absl::DataLossError(
        absl::StrCat("store ", path_, ": the file is damaged: it is empty, and was not"));
  if (empty && std::filesystem::exists(path_ + "-wal", error) &&
      std::filesystem::file_size(path_ + "-wal", error) > 0 && left == StoreLock::Left::kOpen)
    return absl::DataLossError(
        absl::StrCat("store ", path_, ": the file is lost, and its write-ahead log is there"));
  return left == StoreLock::Left::kClosed || empty ? absl::OkStatus() : CheckLog(path_);
}

absl::Status SqliteStore::QuickCheck() {
  if (lock_ == nullptr || lock_->left() == StoreLock::Left::kClosed ||
      lock_->left() == StoreLock::Left::kNever)
    return absl::OkStatus();
  std::vector<std::string> findings;
  Statement check = writer_->Query("PRAGMA quick_check(20)");
  absl::Status read = check.ForEach([&] {
    if (check.Text(0) != "ok") findings.push_back(check.Text(0));
  });
  if (!read.ok()) return read;
  if (findings.empty()) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("store ", path_, ": the file is damaged:\n  ", absl::StrJoin(findings, "\n  ")));
}

SqliteStore::Reader::Reader(SqliteStore& store) : store_(store) {
  std::unique_lock<std::mutex> lock(store_.readers_mutex_);
  store_.reader_free_.wait(lock, [&] { return !store_.readers_.empty(); });
  database_ = std::move(store_.readers_.back());
  store_.readers_.pop_back();
}

SqliteStore::Reader::~Reader() {
  {
    std::lock_guard<std::mutex> lock(store_.readers_mutex_);
    store_.readers_.push_back(std::move(database_));
  }
  store_.reader_free_.notify_one();
}

absl::Status SqliteStore::Backup(const std::string& path) {
  if (std::filesystem::exists(path)) {
    return absl::AlreadyExistsError(absl::StrCat("backup: ", path, " exists; name a new file"));
  }
  Reader reader(*this);
  return WriteBackup(*reader, path);
}

absl::Status SqliteStore::Checkpoint() {
  std::lock_guard lock(checkpoint_mutex_);
  const int pages = writer_->log_pages();
  if (pages < options_.checkpoint_pages || pages == checkpointed_pages_) return absl::OkStatus();
  // All of it is moved and made safe while changes go on; then what came during that, which is little. What
  // came during this is moved between two changes: only when the whole log is in the file is it begun anew.
  absl::Status moved;
  for (int round = 0; round < 2 && moved.ok(); ++round) {
    moved = checkpointer_->Checkpoint();
    if (!moved.ok()) break;
    // In pieces first: a commit needs the disk as well, and would wait for all of it. (When none has come
    // meanwhile, SQLite has synchronised the file already.)
    writeback_->Write();
    moved = checkpointer_->SyncFile();
  }
  if (moved.ok())
    moved = writes_.RunBetween([&](Database& database) {
      checkpointed_pages_ = database.log_pages();
      return database.Checkpoint();
    });
  return moved;
}

absl::Status SqliteStore::CheckIntegrity() {
  Reader reader(*this);
  std::vector<std::string> findings;
  {
    Statement check = reader->Query("PRAGMA integrity_check(20)");
    absl::Status read = check.ForEach([&] { findings.push_back(check.Text(0)); });
    if (!read.ok()) return read;
  }
  if (findings == std::vector<std::string>{"ok"}) findings.clear();
  Statement check = reader->Query("PRAGMA foreign_key_check");
  absl::Status read = check.ForEach([&] {
    findings.push_back(absl::StrCat("row ", check.Int(1), " of ", check.Text(0), " refers to a row of ",
                                    check.Text(2), " that does not exist"));
  });
  if (!read.ok()) return read;
  if (findings.empty()) return absl::OkStatus();
  std::string message = absl::StrCat("store ", path_, " is damaged; restore a backup");
  for (const std::string& finding : findings) absl::StrAppend(&message, "\n  ", finding);
  return absl::DataLossError(message);
}

}  // namespace fusion
