// These functions treat the database as a file, for people who run a server: they copy it, check it and put a
// copy back. None of them needs a server, and none changes a schema.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/store/records.h"

namespace fusion {

struct DatabaseFacts {
  int64_t schema_version = 0;
  int64_t bytes = 0;
  int64_t jobs = 0;
};

// Returns whether a server has the database open. A server that starts at this moment may be refused.
bool DatabaseInUse(const std::string& path);

// Returns whether the last process that had the database open closed it, or none is known to have had it
// open. Otherwise OpenSqliteStore reads the whole file before it opens it, which takes time. Call this while
// no process has the database open.
bool ClosedInOrder(const std::string& path);

// Reads the whole file, also while a server uses it. NOT_FOUND: no such file; FAILED_PRECONDITION: the
// database belongs to another program, or to a newer version; DATA_LOSS: the file is no database, or it is
// damaged, and the message says what is.
absl::StatusOr<DatabaseFacts> CheckDatabase(const std::string& path);

// Writes a consistent copy to `output`, which becomes complete in one step, and checks it; also while a
// server uses the database. Messages name the file that is at fault. ALREADY_EXISTS: `output` is taken. Other
// statuses are those of Store for writing, and those of CheckBackup.
absl::StatusOr<DatabaseFacts> BackUpDatabase(const std::string& path, const std::string& output);

// Returns the facts of a copy that was just made. A damaged copy is kept: it may be all that there is.
// DATA_LOSS names the source if that is damaged as well, as `check_source` tells, else the copy. Other
// statuses are those of CheckDatabase.
absl::StatusOr<DatabaseFacts> CheckBackup(const std::string& output,
                                          const std::function<absl::Status()>& check_source);

struct RestoredDatabase {
  DatabaseFacts facts;
  std::string kept;  // path where the old database is now; empty: there was none
};
// Puts a copy of `input` in the place of the database at `path`; the old database stays beside it, named
// after `now`. The copy is checked first: when that fails, or at any other error, the database stays as it
// was. A crash in between leaves the old database or the copy. The next server brings an older schema up to
// date. Files belong to the owner of the folder, where the caller may give them away. UNAVAILABLE: a server
// uses the database. Other statuses are those of CheckDatabase for `input`.
absl::StatusOr<RestoredDatabase> RestoreDatabase(const std::string& input, const std::string& path,
                                                 Timestamp now);

// Returns the time in the form "20261122T065920Z".
std::string CompactTime(Timestamp time);

}  // namespace fusion
