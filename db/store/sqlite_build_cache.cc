// The build cache within its size: which builds are in use, and removing the least recently used of the
// others.
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "db/store/sqlite_store.h"

namespace fusion {
namespace {

// Keys of builds that unfinished jobs found in the cache, or that are made for them.
constexpr char kWantedKeys[] =
    "SELECT key FROM job_builds UNION "
    "SELECT tasks.key FROM jobs JOIN job_tasks ON job_tasks.job = jobs.id JOIN tasks ON tasks.number = "
    "job_tasks.task "
    "WHERE jobs.state IN ('QUEUED', 'RUNNING') AND tasks.kind = 'BUILD'";

// This condition holds for the blobs of the cache: all but those that jobs hand out.
constexpr char kInCache[] = "NOT EXISTS (SELECT 1 FROM artifacts WHERE artifacts.digest = blob_uses.digest)";

absl::Status CountCache(Database& database, BuildCacheTrim* trim) {
  Statement query = database.Query(
      absl::StrCat("SELECT count(*), coalesce(sum(size_bytes), 0) FROM blob_uses WHERE ", kInCache));
  return query.ForEach([&] {
    trim->blobs = query.Int(0);
    trim->bytes = query.Int(1);
  });
}

}  // namespace

absl::StatusOr<std::map<std::string, BuildRecord>> SqliteStore::UseBuilds(
    const std::string& job, const std::vector<std::string>& keys, Timestamp now) {
  absl::StatusOr<std::map<std::string, BuildRecord>> known = FindBuilds(keys);
  // Often there is none, and then no writer is kept waiting.
  if (!known.ok() || known->empty()) return known;
  return Write([&](Database& database) -> absl::StatusOr<std::map<std::string, BuildRecord>> {
    // Looked up again: some may have gone in between.
    absl::StatusOr<std::map<std::string, BuildRecord>> used = SelectBuilds(database, keys);
    if (!used.ok()) return used;
    for (const auto& [key, build] : *used) {
      absl::Status noted = database
                               .Query(
                                   "INSERT OR IGNORE INTO job_builds (job, key) SELECT id, ?2 FROM jobs "
                                   "WHERE id = ?1 AND state IN ('QUEUED', 'RUNNING')",
                                   job, key)
                               .Run();
      if (!noted.ok()) return noted;
      noted = database
                  .Query("UPDATE blob_uses SET used_micros = max(used_micros, ?2) WHERE digest = ?1",
                         build.binary_digest, now)
                  .Run();
      if (!noted.ok()) return noted;
    }
    return used;
  });
}

absl::StatusOr<BuildCacheTrim> SqliteStore::TrimBuildCache(int64_t max_bytes, Timestamp unreported_before,
                                                           int limit) {
  BuildCacheTrim trim;
  {
    Reader reader(*this);
    FUSION_RETURN_IF_ERROR(CountCache(*reader, &trim));
    if (trim.bytes <= max_bytes) return trim;
  }
  return Write([&](Database& database) -> absl::StatusOr<BuildCacheTrim> {
    BuildCacheTrim done;
    FUSION_RETURN_IF_ERROR(CountCache(database, &done));
    std::vector<std::pair<std::string, int64_t>> unused;
    {
      // A blob without a build may be one whose build is about to be reported.
      Statement query = database.Query(
          absl::StrCat("SELECT digest, size_bytes FROM blob_uses WHERE ", kInCache,
                       " AND digest NOT IN (SELECT binary_digest FROM builds WHERE key IN (", kWantedKeys,
                       "))"
                       " AND (used_micros < ?1 OR EXISTS (SELECT 1 FROM builds WHERE binary_digest = "
                       "blob_uses.digest))"
                       " ORDER BY used_micros, digest LIMIT ?2"),
          unreported_before, limit);
      absl::Status read = query.ForEach([&] { unused.emplace_back(query.Text(0), query.Int(1)); });
      if (!read.ok()) return read;
    }
    for (const auto& [digest, size] : unused) {
      if (done.bytes <= max_bytes) break;
      absl::Status removed = database.Query("DELETE FROM builds WHERE binary_digest = ?1", digest).Run();
      if (removed.ok()) removed = database.Query("DELETE FROM blobs WHERE digest = ?1", digest).Run();
      if (!removed.ok()) return removed;
      done.bytes -= size;
      --done.blobs;
      done.evicted_bytes += size;
      ++done.evicted;
    }
    return done;
  });
}

}  // namespace fusion
