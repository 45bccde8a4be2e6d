#include "db/store/sqlite_database.h"

#include <sqlite3.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace fusion {
namespace {

bool IsOfReading(int code) {
  switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return true;
    default:
      return code == SQLITE_IOERR_READ || code == SQLITE_IOERR_SHORT_READ || code == SQLITE_IOERR_CORRUPTFS ||
             code == SQLITE_IOERR_DATA;
  }
}

}  // namespace

Statement::Statement(Statement&& other) noexcept
    : database_(other.database_),
      statement_(std::exchange(other.statement_, nullptr)),
      error_(std::move(other.error_)) {}

Statement::~Statement() {
  if (statement_ == nullptr) return;
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

absl::StatusOr<bool> Statement::Step() {
  if (!error_.ok()) return error_;
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return error_ = database_->Error(code, "");
}

absl::Status Statement::Run() {
  return ForEach([] {});
}

int64_t Statement::Int(int column) const { return sqlite3_column_int64(statement_, column); }
double Statement::Real(int column) const { return sqlite3_column_double(statement_, column); }
Timestamp Statement::Time(int column) const { return Timestamp(std::chrono::microseconds(Int(column))); }

std::string Statement::Text(int column) const {
  const void* data = sqlite3_column_blob(statement_, column);
  if (data == nullptr) return "";
  return std::string(static_cast<const char*>(data), sqlite3_column_bytes(statement_, column));
}

void Statement::BindError(int code) {
  if (code != SQLITE_OK && error_.ok()) error_ = database_->Error(code, "binding a value");
}

void Statement::Bind(int position, int64_t value) {
  if (error_.ok()) BindError(sqlite3_bind_int64(statement_, position, value));
}
void Statement::Bind(int position, double value) {
  if (error_.ok()) BindError(sqlite3_bind_double(statement_, position, value));
}
void Statement::Bind(int position, std::string_view value) {
  if (!error_.ok()) return;
  // A null pointer would bind NULL.
  const char* data = value.data() == nullptr ? "" : value.data();
  BindError(sqlite3_bind_text64(statement_, position, data, value.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
}
void Statement::Bind(int position, Bytes bytes) {
  if (!error_.ok()) return;
  const char* data = bytes.value.data() == nullptr ? "" : bytes.value.data();
  BindError(sqlite3_bind_blob64(statement_, position, data, bytes.value.size(), SQLITE_TRANSIENT));
}
void Statement::Bind(int position, std::nullptr_t) {
  if (error_.ok()) BindError(sqlite3_bind_null(statement_, position));
}

absl::StatusOr<std::unique_ptr<Database>> Database::Open(const std::string& path, Mode mode,
                                                         std::chrono::milliseconds busy_timeout) {
  std::unique_ptr<Database> database(new Database(path));
  int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_READWRITE;
  if (mode == Mode::kReadWrite) flags |= SQLITE_OPEN_CREATE;
  const int code = sqlite3_open_v2(path.c_str(), &database->connection_, flags, nullptr);
  if (code != SQLITE_OK) return database->Error(code, "opening");
  sqlite3_busy_timeout(database->connection_, static_cast<int>(busy_timeout.count()));
  if (mode == Mode::kReadOnly) {
    // Not SQLITE_OPEN_READONLY: readers of a write-ahead log must be able to write its index.
    absl::Status set = database->Execute("PRAGMA query_only = ON");
    if (!set.ok()) return set;
  }
  return database;
}

Database::~Database() {
  for (auto& [sql, statement] : statements_) sqlite3_finalize(statement);
  sqlite3_close(connection_);
}

Statement Database::Prepare(std::string_view sql) {
  auto found = statements_.find(sql);
  if (found == statements_.end()) {
    sqlite3_stmt* statement = nullptr;
    const int code = sqlite3_prepare_v3(connection_, sql.data(), static_cast<int>(sql.size()),
                                        SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
    if (code != SQLITE_OK)
      return Statement(this, nullptr, Error(code, absl::StrCat("preparing '", std::string(sql), "'")));
    found = statements_.emplace(sql, statement).first;
  }
  if (sqlite3_stmt_busy(found->second)) {
    return Statement(this, nullptr,
                     absl::InternalError(absl::StrCat("statement is in use: '", std::string(sql), "'")));
  }
  return Statement(this, found->second, absl::OkStatus());
}

absl::Status Database::Execute(const std::string& sql) {
  const int code = sqlite3_exec(connection_, sql.c_str(), nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : Error(code, "");
}

absl::StatusOr<int64_t> Database::Integer(const std::string& sql) {
  Statement statement = Query(sql);
  FUSION_ASSIGN_OR_RETURN(bool row, statement.Step());
  if (!row) return absl::InternalError(absl::StrCat("no row from '", sql, "'"));
  return statement.Int(0);
}

int64_t Database::changes() const { return sqlite3_changes64(connection_); }
int64_t Database::total_changes() const { return sqlite3_total_changes64(connection_); }
int64_t Database::last_row_number() const { return sqlite3_last_insert_rowid(connection_); }
bool Database::in_transaction() const { return sqlite3_get_autocommit(connection_) == 0; }

absl::Status Database::CopyTo(const std::string& path) {
  FUSION_ASSIGN_OR_RETURN(std::unique_ptr<Database> copy,
                          Open(path, Mode::kReadWrite, std::chrono::seconds(5)));
  sqlite3_backup* backup = sqlite3_backup_init(copy->connection_, "main", connection_, "main");
  if (backup == nullptr) return copy->Error(sqlite3_errcode(copy->connection_), "copying");
  const int code = sqlite3_backup_step(backup, -1);
  sqlite3_backup_finish(backup);
  // SQLite leaves every error with the copy. The copy was empty, so only the source can be damaged, locked or
  // unreadable.
  if (code != SQLITE_DONE)
    return IsOfReading(code) ? Error(code, "copying it") : copy->Error(code, "copying");
  // The copy is one file, without a write-ahead log beside it.
  return copy->Execute("PRAGMA journal_mode = DELETE");
}

void Database::WatchLog(int most) {
  most_log_pages_ = most;
  sqlite3_wal_hook(
      connection_,
      [](void* watching, sqlite3*, const char*, int pages) {
        Database& database = *static_cast<Database*>(watching);
        database.log_pages_ = pages;
        // An error of the file is told by whoever needs the file; what was committed is in the log.
        if (pages >= database.most_log_pages_) database.Checkpoint().IgnoreError();
        return SQLITE_OK;
      },
      this);
}

absl::Status Database::Checkpoint() {
  const int code =
      sqlite3_wal_checkpoint_v2(connection_, "main", SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
  // Busy: another connection is at it, which serves as well.
  return code == SQLITE_OK || code == SQLITE_BUSY ? absl::OkStatus()
                                                  : Error(code, "moving the write-ahead log into the file");
}

absl::Status Database::SyncFile() {
  // The file is synchronised by SQLite's own descriptor: closing another one of the same file would end the
  // locks of the process.
  sqlite3_file* file = nullptr;
  int code = sqlite3_file_control(connection_, "main", SQLITE_FCNTL_FILE_POINTER, &file);
  if (code == SQLITE_OK && file != nullptr && file->pMethods != nullptr)
    code = file->pMethods->xSync(file, SQLITE_SYNC_NORMAL);
  return code == SQLITE_OK ? absl::OkStatus() : Error(code, "synchronising the file");
}

absl::Status Database::Error(int code, const std::string& doing) const {
  // The message has the connection's own words where the error is its last one.
  const char* words = connection_ != nullptr && (sqlite3_errcode(connection_) & 0xff) == (code & 0xff)
                          ? sqlite3_errmsg(connection_)
                          : sqlite3_errstr(code);
  const auto message = [&](const char* what) {
    return absl::StrCat("store ", path_, ": ", what, doing.empty() ? "" : ", ", doing, " (", words, ")");
  };
  switch (code & 0xff) {
    case SQLITE_FULL:
      return absl::ResourceExhaustedError(message("the disk is full or the size limit is reached"));
    case SQLITE_TOOBIG:
    case SQLITE_NOMEM:
      return absl::ResourceExhaustedError(message("a value is too large"));
    case SQLITE_CORRUPT:
      return absl::DataLossError(message("the file is damaged; restore a backup"));
    case SQLITE_NOTADB:
      return absl::DataLossError(message("the file is not a database"));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::UnavailableError(message("the file is locked by another process"));
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return absl::PermissionDeniedError(message("the file cannot be written"));
    case SQLITE_CANTOPEN:
      // A connection opens the log and its index when it first reads, long after the store was opened.
      if (const int system = connection_ == nullptr ? 0 : sqlite3_system_errno(connection_);
          system == EMFILE || system == ENFILE)
        return absl::UnavailableError(
            message("no file descriptor is free: raise the limit of open files (ulimit -n, LimitNOFILE)"));
      return absl::PermissionDeniedError(
          message("the file cannot be opened: check that its folder exists and is writable"));
    case SQLITE_CONSTRAINT:
      return absl::FailedPreconditionError(message("a rule of the schema forbids it"));
    case SQLITE_IOERR:
      return absl::InternalError(message("the disk gave an error"));
    default:
      return absl::InternalError(message("database error"));
  }
}

Transaction::Transaction(Database& database) : database_(database) {
  status_ = database_.Query("BEGIN IMMEDIATE").Run();
  open_ = status_.ok();
}

Transaction::~Transaction() {
  // After a full disk or an I/O error SQLite may have rolled back by itself; then this is an error without
  // effect.
  if (open_) database_.Query("ROLLBACK").Run().IgnoreError();
}

absl::Status Transaction::Commit() {
  absl::Status committed = database_.Query("COMMIT").Run();
  if (committed.ok()) open_ = false;
  return committed;
}

}  // namespace fusion
