// One connection to an SQLite file: prepared statements, transactions, and SQLite's errors as statuses.
// Private to db/store.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "db/store/records.h"

struct sqlite3;
struct sqlite3_stmt;

namespace fusion {

// Marks a value to be bound as BLOB; std::string_view is bound as TEXT.
struct Bytes {
  std::string_view value;
};

class Database;

// A prepared statement with its values, borrowed from its database's cache. An error in preparing or binding
// is kept and returned by the first Step. Must not outlive the database; the same text must not be in use
// twice at a time.
class Statement {
 public:
  Statement(Statement&& other) noexcept;
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  ~Statement();

  // True: there is a row to read. False: the statement has run to its end.
  absl::StatusOr<bool> Step();
  // Runs the statement to its end.
  absl::Status Run();
  // Calls `row` for each row; reads the columns of the present row from this statement.
  template <typename Row>
  absl::Status ForEach(Row&& row) {
    while (true) {
      FUSION_ASSIGN_OR_RETURN(bool more, Step());
      if (!more) return absl::OkStatus();
      row();
    }
  }

  // Columns of the present row, counted from 0.
  int64_t Int(int column) const;
  double Real(int column) const;
  std::string Text(int column) const;  // TEXT and BLOB; "" for NULL
  Timestamp Time(int column) const;

 private:
  friend class Database;
  Statement(Database* database, sqlite3_stmt* statement, absl::Status error)
      : database_(database), statement_(statement), error_(std::move(error)) {}
  void Bind(int position, int64_t value);
  void Bind(int position, double value);
  void Bind(int position, std::string_view value);
  void Bind(int position, Bytes value);
  void Bind(int position, std::nullptr_t);
  void Bind(int position, Timestamp value) { Bind(position, int64_t{value.time_since_epoch().count()}); }
  void BindError(int code);
  template <typename T>
  void BindAny(int position, const T& value) {
    if constexpr (std::is_integral_v<T>) {
      Bind(position, static_cast<int64_t>(value));
    } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
      Bind(position, std::string_view(value));
    } else {
      Bind(position, value);
    }
  }

  Database* database_;
  sqlite3_stmt* statement_;
  absl::Status error_;
};

// Not thread safe.
class Database {
 public:
  enum class Mode { kReadWrite, kReadOnly };
  static absl::StatusOr<std::unique_ptr<Database>> Open(const std::string& path, Mode mode,
                                                        std::chrono::milliseconds busy_timeout);
  ~Database();

  // Returns a statement with ?1, ?2 ... bound to the arguments: integers, doubles, text, Bytes, Timestamp,
  // nullptr.
  template <typename... Arguments>
  Statement Query(std::string_view sql, const Arguments&... arguments) {
    Statement statement = Prepare(sql);
    int position = 0;
    (statement.BindAny(++position, arguments), ...);
    return statement;
  }
  // Runs SQL text of any number of statements. For schemas and pragmas.
  absl::Status Execute(const std::string& sql);
  // Returns the single integer that a query without arguments gives.
  absl::StatusOr<int64_t> Integer(const std::string& sql);

  int64_t changes() const;        // rows changed by the last statement
  int64_t total_changes() const;  // rows changed by this connection, also where that was undone later
  int64_t last_row_number() const;
  bool in_transaction() const;
  const std::string& path() const { return path_; }

  // Copies the whole database into a new file.
  absl::Status CopyTo(const std::string& path);
  // Counts the pages of the write-ahead log at each commit of this connection. SQLite itself then moves none
  // of them into the file; a commit that finds `most` or more moves them.
  void WatchLog(int most);
  // Returns the pages of the log after the last commit; 0: none yet. Any thread may ask.
  int log_pages() const { return log_pages_; }
  // Moves what the write-ahead log holds into the file, as far as that is possible beside other connections;
  // none of the connections waits.
  absl::Status Checkpoint();
  // Returns when everything that was written to the file itself is on the disk.
  absl::Status SyncFile();
  // Returns the last error of the connection as a status, with SQLite's own words after `doing`.
  absl::Status Error(int code, const std::string& doing) const;

 private:
  friend class Statement;
  explicit Database(std::string path) : path_(std::move(path)) {}
  Statement Prepare(std::string_view sql);

  std::string path_;
  // This hash lets a statement be found by its text without a copy of the text.
  struct TextHash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  sqlite3* connection_ = nullptr;
  std::unordered_map<std::string, sqlite3_stmt*, TextHash, std::equal_to<>> statements_;
  std::atomic<int> log_pages_ = 0;
  int most_log_pages_ = 0;
};

// Starts with BEGIN IMMEDIATE, and is rolled back at the end of the scope unless committed.
class Transaction {
 public:
  explicit Transaction(Database& database);
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction();
  const absl::Status& status() const { return status_; }  // of BEGIN
  absl::Status Commit();

 private:
  Database& database_;
  absl::Status status_;
  bool open_ = false;
};

}  // namespace fusion
