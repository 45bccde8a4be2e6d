#include "db/store/database_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/file_lock.h"
#include "base/status_macros.h"
#include "db/store/log_check.h"
#include "db/store/migrations.h"
#include "db/store/sqlite_database.h"
#include "db/store/store_lock.h"

namespace fusion {
namespace {

constexpr std::chrono::seconds kBusyTimeout{5};
constexpr size_t kMostFindings = 20;

absl::StatusOr<std::unique_ptr<Database>> OpenExisting(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    return absl::NotFoundError(absl::StrCat("there is no database ", path));
  return Database::Open(path, Database::Mode::kReadOnly, kBusyTimeout);
}

// "rows 7 of table x ..." for everything that is wrong.
absl::Status Findings(Database& database, std::vector<std::string>* findings) {
  {
    Statement check = database.Query("PRAGMA integrity_check(20)");
    absl::Status read = check.ForEach([&] {
      if (check.Text(0) != "ok") findings->push_back(check.Text(0));
    });
    if (!read.ok()) return read;
  }
  Statement check = database.Query("PRAGMA foreign_key_check");
  return check.ForEach([&] {
    if (findings->size() < kMostFindings)
      findings->push_back(absl::StrCat("row ", check.Int(1), " of ", check.Text(0), " refers to a row of ",
                                       check.Text(2), " that does not exist"));
  });
}

absl::StatusOr<DatabaseFacts> Check(Database& database) {
  DatabaseFacts facts;
  FUSION_ASSIGN_OR_RETURN(int64_t version, CheckSchemaVersion(database, EmbeddedMigrations()));
  if (version == 0)
    return absl::FailedPreconditionError(
        absl::StrCat("store ", database.path(), ": the file is empty, and no database of this program"));
  facts.schema_version = version;
  std::vector<std::string> findings;
  FUSION_RETURN_IF_ERROR(Findings(database, &findings));
  if (!findings.empty())
    return absl::DataLossError(absl::StrCat("store ", database.path(), " is damaged; restore a backup\n  ",
                                            absl::StrJoin(findings, "\n  ")));
  FUSION_ASSIGN_OR_RETURN(int64_t jobs, database.Integer("SELECT count(*) FROM jobs"));
  facts.jobs = jobs;
  // Not the file's size: beside a server the latest pages are in its log.
  FUSION_ASSIGN_OR_RETURN(
      int64_t bytes,
      database.Integer("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"));
  facts.bytes = bytes;
  return facts;
}

// On the disk when it returns.
absl::Status Rename(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot rename ", from, " to ", to));
  const std::string folder = std::filesystem::path(to).parent_path().string();
  const int file = open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", folder));
  const int failed = fsync(file);
  close(file);
  return failed ? absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", folder, " to the disk"))
                : absl::OkStatus();
}

// The server that is to use the file may run as another user than the one who restores, most likely root.
// Without the right to give files away, the file is that user's own.
void TakeOwnerOfFolder(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  struct stat owner {};
  if (stat(folder.empty() ? "." : folder.c_str(), &owner) != 0) return;
  (void)!chown(path.c_str(), owner.st_uid, owner.st_gid);
}

// Keeps the database at `path` as `kept` too. Its write-ahead log goes along: beside another database it
// would be taken for that one's.
absl::Status KeepOld(const std::string& path, const std::string& kept) {
  std::error_code missing;
  const bool there = std::filesystem::exists(path, missing);
  // The log into the database, where that loses nothing; a damaged one keeps its log.
  if (there && CheckLog(path).ok()) {
    absl::StatusOr<std::unique_ptr<Database>> old =
        Database::Open(path, Database::Mode::kReadWrite, kBusyTimeout);
    if (old.ok()) (*old)->Execute("PRAGMA wal_checkpoint(TRUNCATE)").IgnoreError();
  }
  if (there && link(path.c_str(), kept.c_str()) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot keep the old database as ", kept));
  for (const char* suffix : {"-wal", "-shm"}) {
    const std::string log = absl::StrCat(path, suffix);
    std::error_code error;
    if (!std::filesystem::exists(log, error)) continue;
    FUSION_RETURN_IF_ERROR(Rename(log, absl::StrCat(kept, suffix)));
  }
  return absl::OkStatus();
}

}  // namespace

namespace {

// CheckLog, unless a server is writing it.
absl::Status CheckLogAtRest(const std::string& path) {
  return DatabaseInUse(path) ? absl::OkStatus() : CheckLog(path);
}

}  // namespace

bool DatabaseInUse(const std::string& path) { return FileLock::IsHeld(path + ".lock"); }

bool ClosedInOrder(const std::string& path) {
  const StoreLock::Left left = StoreLock::LeftIn(path + ".lock");
  return left == StoreLock::Left::kClosed || left == StoreLock::Left::kNever;
}

absl::StatusOr<DatabaseFacts> CheckDatabase(const std::string& path) {
  FUSION_RETURN_IF_ERROR(CheckLogAtRest(path));
  FUSION_ASSIGN_OR_RETURN(std::unique_ptr<Database> database, OpenExisting(path));
  return Check(*database);
}

absl::StatusOr<DatabaseFacts> BackUpDatabase(const std::string& path, const std::string& output) {
  std::error_code error;
  if (std::filesystem::exists(output, error))
    return absl::AlreadyExistsError(absl::StrCat("backup: ", output, " exists; name a new file"));
  const absl::Status log = CheckLogAtRest(path);  // before SQLite leaves out what is damaged
  {
    FUSION_ASSIGN_OR_RETURN(std::unique_ptr<Database> database, OpenExisting(path));
    FUSION_RETURN_IF_ERROR(CheckSchemaVersion(*database, EmbeddedMigrations()).status());
    FUSION_RETURN_IF_ERROR(WriteBackup(*database, output));
  }
  if (absl::IsDataLoss(log))
    return absl::DataLossError(
        absl::StrCat(log.message(), "\nThe copy ", output, " is without what is lost, and kept"));
  return CheckBackup(output, [&] { return CheckDatabase(path).status(); });
}

absl::StatusOr<DatabaseFacts> CheckBackup(const std::string& output,
                                          const std::function<absl::Status()>& check_source) {
  absl::StatusOr<DatabaseFacts> facts = CheckDatabase(output);
  if (!absl::IsDataLoss(facts.status())) return facts;
  const absl::Status source = check_source();
  if (!absl::IsDataLoss(source)) return facts;
  return absl::DataLossError(
      absl::StrCat(source.message(), "\nThe copy ", output, " is as damaged, and kept"));
}

absl::StatusOr<RestoredDatabase> RestoreDatabase(const std::string& input, const std::string& path,
                                                 Timestamp now) {
  std::error_code error;
  if (std::filesystem::equivalent(input, path, error))
    return absl::InvalidArgumentError(absl::StrCat(input, " is the database itself; name a backup"));
  FUSION_ASSIGN_OR_RETURN(std::unique_ptr<StoreLock> lock, StoreLock::Acquire(path + ".lock"));

  RestoredDatabase restored;
  const std::string fresh = absl::StrCat(path, ".restored");
  {
    FUSION_ASSIGN_OR_RETURN(std::unique_ptr<Database> source, OpenExisting(input));
    FUSION_RETURN_IF_ERROR(CheckSchemaVersion(*source, EmbeddedMigrations()).status());
    FUSION_RETURN_IF_ERROR(WriteBackup(*source, fresh));
  }
  absl::StatusOr<DatabaseFacts> facts = CheckDatabase(fresh);
  absl::Status status = facts.status();
  TakeOwnerOfFolder(fresh);
  TakeOwnerOfFolder(path + ".lock");
  if (status.ok() &&
      (std::filesystem::exists(path, error) || std::filesystem::exists(path + "-wal", error))) {
    restored.kept = absl::StrCat(path, ".before-restore-", CompactTime(now));
    for (int i = 2; std::filesystem::exists(restored.kept, error); ++i)
      restored.kept = absl::StrCat(path, ".before-restore-", CompactTime(now), "-", i);
    status = KeepOld(path, restored.kept);
  }
  // From here on there is always a database at `path`: the old one until this step, the new one after.
  if (status.ok()) status = Rename(fresh, path);
  if (!status.ok()) {
    std::filesystem::remove(fresh, error);
    return status;
  }
  restored.facts = *facts;
  return restored;
}

std::string CompactTime(Timestamp time) {
  const std::time_t seconds = time.time_since_epoch().count() / 1000000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  return absl::StrFormat("%04d%02d%02dT%02d%02d%02dZ", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                         utc.tm_hour, utc.tm_min, utc.tm_sec);
}

}  // namespace fusion
