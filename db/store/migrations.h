// The schema's history. Private to db/store.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/store/sqlite_database.h"

namespace fusion {

// One step of the schema. The version of a schema is the number of migrations it has seen (PRAGMA
// user_version).
struct Migration {
  std::string name;  // "0001_jobs_and_tasks"
  std::string sql;
};

// Returns the migrations of db/migrations, in order.
const std::vector<Migration>& EmbeddedMigrations();

// Brings the schema of the file to version migrations.size(), each step in a transaction of its own. A file
// that has a schema already is copied to <path>.v<version>.backup first; an older backup of that name is
// replaced. FAILED_PRECONDITION: the schema is newer than the migrations, or the file belongs to another
// program.
absl::Status Migrate(Database& database, const std::vector<Migration>& migrations);

// Returns the version of the file's schema, 0 for an empty file, and changes nothing. FAILED_PRECONDITION has
// the causes that it has in Migrate.
absl::StatusOr<int64_t> CheckSchemaVersion(Database& database, const std::vector<Migration>& migrations);

// Copies the database to `path` in one visible step: the copy is complete or not there. Replaces `path` if it
// exists.
absl::Status WriteBackup(Database& database, const std::string& path);

}  // namespace fusion
