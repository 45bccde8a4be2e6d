// The statistics say how much there is. Every query is answered from a partial index of what has not ended,
// or from the file itself.
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "db/store/sqlite_store.h"

namespace fusion {

absl::StatusOr<StoreStatistics> SqliteStore::Statistics() {
  Reader reader(*this);
  StoreStatistics statistics;
  for (const bool running : {false, true}) {
    Statement query =
        running ? reader->Query("SELECT kind, count(*) FROM tasks WHERE state = 'RUNNING' GROUP BY kind")
                : reader->Query("SELECT kind, count(*) FROM tasks WHERE state = 'QUEUED' GROUP BY kind");
    absl::Status read = query.ForEach([&] {
      const bool build = query.Text(0) == "BUILD";
      int64_t& count = running ? (build ? statistics.running_builds : statistics.running_timings)
                               : (build ? statistics.queued_builds : statistics.queued_timings);
      count = query.Int(1);
    });
    if (!read.ok()) return read;
  }
  {
    Statement query =
        reader->Query("SELECT state, count(*) FROM jobs WHERE state IN ('QUEUED', 'RUNNING') GROUP BY state");
    absl::Status read = query.ForEach([&] {
      (query.Text(0) == "QUEUED" ? statistics.queued_jobs : statistics.running_jobs) = query.Int(1);
    });
    if (!read.ok()) return read;
  }
  {
    std::lock_guard lock(damage_mutex_);
    statistics.damaged_blobs = damaged_blobs_;
    statistics.rebuilt_blobs = rebuilt_blobs_;
  }
  for (const char* suffix : {"", "-wal"}) {
    std::error_code error;
    const auto size = std::filesystem::file_size(absl::StrCat(path_, suffix), error);
    if (!error) statistics.bytes += static_cast<int64_t>(size);
  }
  return statistics;
}

}  // namespace fusion
