#include "server/upkeep/backup.h"

#include <filesystem>
#include <mutex>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "db/store/database_file.h"
#include "server/upkeep/data_directory.h"

namespace fusion {

absl::StatusOr<v1::BackUpResponse> BackUpStore(Store& store, const std::string& data_directory,
                                               Timestamp now) {
  // Two in one second have names of their own.
  constexpr int kAttempts = 100;
  static std::mutex one_at_a_time;
  std::lock_guard lock(one_at_a_time);
  for (int attempt = 1;; ++attempt) {
    const std::string path = absl::StrCat(data_directory, "/fusion-backup-", CompactTime(now),
                                          attempt == 1 ? "" : absl::StrCat("-", attempt), ".db");
    absl::Status written = store.Backup(path);
    if (absl::IsAlreadyExists(written) && attempt < kAttempts) continue;
    if (!written.ok()) return written;
    absl::StatusOr<DatabaseFacts> facts = CheckBackup(path, [&] { return store.CheckIntegrity(); });
    if (!facts.ok()) return facts.status();
    v1::BackUpResponse response;
    std::error_code error;
    const std::filesystem::path absolute = std::filesystem::absolute(path, error);
    response.set_path(error ? path : absolute.string());
    response.set_bytes(facts->bytes);
    return response;
  }
}

std::string RestoreAdvice(const std::string& data_directory) {
  std::string newest;
  std::filesystem::file_time_type newest_time;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(data_directory, error)) {
    const std::string name = entry.path().filename().string();
    // Backups are made when people ask for them, and before the schema is changed.
    const bool backup = (absl::StartsWith(name, "fusion-backup-") && absl::EndsWith(name, ".db")) ||
                        (absl::StartsWith(name, "fusion.db.v") && absl::EndsWith(name, ".backup"));
    if (!backup) continue;
    const std::filesystem::file_time_type time = entry.last_write_time(error);
    if (error || (!newest.empty() && time <= newest_time)) continue;
    newest = entry.path().string();
    newest_time = time;
  }
  return absl::StrCat("; put a backup in its place with: fusion-server restore --data ", data_directory,
                      " --input ", newest.empty() ? "BACKUP" : newest,
                      newest.empty() ? " (none lies beside it)" : "",
                      "; the damaged one is kept. Without a backup, move ", DatabasePath(data_directory),
                      "* away: the server then begins with an empty one");
}

}  // namespace fusion
