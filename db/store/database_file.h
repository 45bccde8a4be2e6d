// The database as a file, for people who run a server: copies, checks, putting a copy back. None of these
// needs a server, and none changes a schema.
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

// Whether the last one who had the database open closed it, or nobody is known to have had it open. Else
// OpenSqliteStore reads all of it before it opens it, which takes its time. Nobody has it open now.
bool ClosedInOrder(const std::string& path);

// Reads the whole file, also while a server uses it. NOT_FOUND: no such file; FAILED_PRECONDITION: the
// database of another program, or of a newer version; DATA_LOSS: no database, or damaged, with what is.
absl::StatusOr<DatabaseFacts> CheckDatabase(const std::string& path);

// Writes a consistent copy to `output`, which becomes complete in one step, and checks it; also while a
// server uses the database. Messages name the file that is at fault. ALREADY_EXISTS: output is taken; other
// statuses of writing as Store's; others as CheckBackup.
absl::StatusOr<DatabaseFacts> BackUpDatabase(const std::string& path, const std::string& output);

// The facts of a copy that was just made. A damaged one is kept: it may be all that there is. DATA_LOSS names
// the source where that is damaged as well, as `check_source` tells, else the copy. Other statuses as
// CheckDatabase.
absl::StatusOr<DatabaseFacts> CheckBackup(const std::string& output,
                                          const std::function<absl::Status()>& check_source);

struct RestoredDatabase {
  DatabaseFacts facts;
  std::string kept;  // where the database that was there is now; empty: there was none
};
// Puts a copy of `input` in the place of the database at `path`; the one that was there stays beside it,
// named after `now`. The copy is checked first: when that fails, or at any other error, the database stays as
// it was. A crash in between leaves either. An older schema is brought up to date by the next server. Files
// belong to the owner of the folder, where the caller may give them away. UNAVAILABLE: a server uses the
// database. Other statuses as CheckDatabase, of input.
absl::StatusOr<RestoredDatabase> RestoreDatabase(const std::string& input, const std::string& path,
                                                 Timestamp now);

// "20261122T065920Z"
std::string CompactTime(Timestamp time);

}  // namespace fusion
