#include "server/service/backup.h"

#include <filesystem>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "db/store/database_file.h"

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
    absl::StatusOr<DatabaseFacts> facts = CheckDatabase(path);
    if (!facts.ok()) return facts.status();
    v1::BackUpResponse response;
    std::error_code error;
    const std::filesystem::path absolute = std::filesystem::absolute(path, error);
    response.set_path(error ? path : absolute.string());
    response.set_bytes(facts->bytes);
    return response;
  }
}

}  // namespace fusion
