#include "db/store/migrations.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace fusion {
namespace {

// "FUSN": tells our files from those of other programs (PRAGMA application_id).
constexpr int64_t kApplicationId = 0x4655534e;
// No program will ever have so many.
constexpr int64_t kMostVersions = 10000;

absl::Status Apply(Database& database, const Migration& migration, size_t version) {
  Transaction transaction(database);
  if (!transaction.status().ok()) return transaction.status();
  absl::Status applied = database.Execute(migration.sql);
  if (!applied.ok()) {
    return absl::Status(applied.code(), absl::StrCat("migration ", migration.name, ": ", applied.message()));
  }
  applied = database.Execute(
      absl::StrCat("PRAGMA application_id = ", kApplicationId, "; PRAGMA user_version = ", version));
  if (!applied.ok()) return applied;
  return transaction.Commit();
}

absl::Status SyncFile(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  const int failed = fsync(file);
  const int error = errno;
  close(file);
  return failed ? absl::ErrnoToStatus(error, absl::StrCat("cannot write ", path, " to the disk"))
                : absl::OkStatus();
}

}  // namespace

absl::StatusOr<int64_t> CheckSchemaVersion(Database& database, const std::vector<Migration>& migrations) {
  absl::StatusOr<int64_t> version = database.Integer("PRAGMA user_version");
  if (!version.ok()) return version.status();
  FUSION_ASSIGN_OR_RETURN(int64_t application, database.Integer("PRAGMA application_id"));
  FUSION_ASSIGN_OR_RETURN(int64_t tables, database.Integer("SELECT count(*) FROM sqlite_schema"));

  const bool empty = *version == 0 && application == 0 && tables == 0;
  // Page 1 may be damaged where SQLite does not look.
  FUSION_ASSIGN_OR_RETURN(
      int64_t ours,
      database.Integer(
          "SELECT count(*) FROM sqlite_schema WHERE name IN ('jobs', 'tasks', 'job_events', 'blobs')"));
  if (ours == 4 && (application != kApplicationId || *version <= 0 || *version > kMostVersions))
    return absl::DataLossError(absl::StrCat("store ", database.path(),
                                            ": the file is damaged: its header is not that of its tables"));
  if (!empty && application != kApplicationId) {
    return absl::FailedPreconditionError(absl::StrCat(
        "store ", database.path(), ": the file is the database of another program; name another file"));
  }
  if (*version > static_cast<int64_t>(migrations.size())) {
    return absl::FailedPreconditionError(
        absl::StrCat("store ", database.path(),
                     ": the file was written by a newer version of this program (its schema is version ",
                     *version, ", this program knows up to ", migrations.size(),
                     "); run the newer version, or restore the backup that it made"));
  }
  return *version;
}

absl::Status Migrate(Database& database, const std::vector<Migration>& migrations) {
  FUSION_ASSIGN_OR_RETURN(int64_t version, CheckSchemaVersion(database, migrations));
  if (version > 0 && version < static_cast<int64_t>(migrations.size())) {
    absl::Status backup = WriteBackup(database, absl::StrCat(database.path(), ".v", version, ".backup"));
    if (!backup.ok()) return backup;
  }
  for (size_t i = version; i < migrations.size(); ++i) {
    absl::Status applied = Apply(database, migrations[i], i + 1);
    if (!applied.ok()) return applied;
  }
  return absl::OkStatus();
}

absl::Status WriteBackup(Database& database, const std::string& path) {
  const std::string partial = absl::StrCat(path, ".partial");
  std::error_code ignored;
  std::filesystem::remove(partial, ignored);
  absl::Status copied = database.CopyTo(partial);
  if (copied.ok()) copied = SyncFile(partial);
  if (!copied.ok()) {
    std::filesystem::remove(partial, ignored);
    return copied;
  }
  if (std::rename(partial.c_str(), path.c_str()) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot rename ", partial, " to ", path));
  }
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return SyncFile(folder.empty() ? "." : folder.string());
}

}  // namespace fusion
