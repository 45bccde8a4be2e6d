// The build cache, blobs and artifacts.
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "db/store/sqlite_store.h"

namespace fusion {
namespace {

// The bytes as they are stored, whatever they are. NOT_FOUND.
absl::StatusOr<std::string> SelectBlob(Database& database, const std::string& digest) {
  Statement query = database.Query("SELECT data FROM blobs WHERE digest = ?1", digest);
  FUSION_ASSIGN_OR_RETURN(bool row, query.Step());
  if (!row) return absl::NotFoundError(absl::StrCat("there is no blob ", digest));
  return query.Text(0);
}

bool HasDigest(std::string_view data, const std::string& digest) {
  return absl::StrCat("sha256:", Sha256Hex(data)) == digest;
}

// The builds whose binary it is are no longer known, so that they are made again, and by jobs that have made
// them already too. The blob goes with them, which is returned, unless jobs hand it out: nothing makes such a
// folder again.
absl::StatusOr<bool> ForgetDamaged(Database& database, const std::string& digest) {
  for (const char* sql :
       {"DELETE FROM job_tasks WHERE job IN (SELECT id FROM jobs WHERE state IN ('QUEUED', 'RUNNING')) "
        "AND task IN (SELECT number FROM tasks WHERE kind = 'BUILD' AND state = 'DONE' "
        "AND key IN (SELECT key FROM builds WHERE binary_digest = ?1))",
        "DELETE FROM builds WHERE binary_digest = ?1",
        "DELETE FROM blobs WHERE digest = ?1 AND digest NOT IN (SELECT digest FROM artifacts)"}) {
    FUSION_RETURN_IF_ERROR(database.Query(sql, digest).Run());
  }
  return database.changes() > 0;
}

}  // namespace

absl::StatusOr<std::map<std::string, BuildRecord>> SelectBuilds(Database& database,
                                                                const std::vector<std::string>& keys) {
  std::map<std::string, BuildRecord> builds;
  for (const std::string& key : keys) {
    Statement query = database.Query(
        "SELECT outcome, binary_digest, seconds, created_micros, log FROM builds WHERE key = ?1 "
        "AND (binary_digest = '' OR binary_digest IN (SELECT digest FROM blobs))",
        key);
    FUSION_ASSIGN_OR_RETURN(bool row, query.Step());
    if (!row) continue;
    builds[key] = BuildRecord{.key = key,
                              .outcome = query.Text(0),
                              .binary_digest = query.Text(1),
                              .log = query.Text(4),
                              .seconds = query.Real(2),
                              .created = query.Time(3)};
  }
  return builds;
}

absl::StatusOr<std::map<std::string, BuildRecord>> SqliteStore::FindBuilds(
    const std::vector<std::string>& keys) {
  Reader reader(*this);
  return SelectBuilds(*reader, keys);
}

absl::Status InsertBuild(Database& database, const BuildRecord& build) {
  return database
      .Query(
          "INSERT OR REPLACE INTO builds (key, outcome, binary_digest, seconds, created_micros, log) "
          "VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
          build.key, build.outcome, build.binary_digest, build.seconds, build.created, build.log)
      .Run();
}

absl::Status SqliteStore::PutBuild(const BuildRecord& build) {
  return Write([&](Database& database) { return InsertBuild(database, build); });
}

absl::StatusOr<std::string> SqliteStore::PutBlob(std::string_view data, const std::string& expected_digest,
                                                 Timestamp now) {
  const std::string digest = absl::StrCat("sha256:", Sha256Hex(data));
  if (!expected_digest.empty() && expected_digest != digest) {
    return absl::InvalidArgumentError(
        absl::StrCat("the bytes have the digest ", digest, ", not ", expected_digest));
  }
  absl::Status stored = Write([&](Database& database) -> absl::Status {
    // Written even when the digest is known: that repairs bytes that were damaged on the disk.
    absl::Status written =
        database
            .Query(
                "INSERT INTO blobs (digest, size_bytes, created_micros, data) VALUES (?1, ?2, ?3, ?4) "
                "ON CONFLICT (digest) DO UPDATE SET size_bytes = excluded.size_bytes, data = excluded.data "
                "WHERE data <> excluded.data",
                digest, data.size(), now, Bytes{data})
            .Run();
    if (!written.ok()) return written;
    return database
        .Query(
            "INSERT INTO blob_uses (digest, size_bytes, used_micros) VALUES (?1, ?2, ?3) "
            "ON CONFLICT (digest) DO UPDATE SET used_micros = max(used_micros, excluded.used_micros)",
            digest, data.size(), now)
        .Run();
  });
  if (!stored.ok()) return stored;
  std::lock_guard lock(damage_mutex_);
  rebuilt_blobs_ += static_cast<int64_t>(damaged_.erase(digest));
  return digest;
}

absl::StatusOr<std::string> SqliteStore::GetBlob(const std::string& digest) {
  {
    Reader reader(*this);
    absl::StatusOr<std::string> data = SelectBlob(*reader, digest);
    if (!data.ok() || HasDigest(*data, digest)) return data;
  }
  struct Found {
    std::optional<std::string> good;  // after all
    bool removed = false;
  };
  const absl::StatusOr<Found> found = Write([&](Database& database) -> absl::StatusOr<Found> {
    // Read again: meanwhile somebody may have stored it anew.
    FUSION_ASSIGN_OR_RETURN(std::string data, SelectBlob(database, digest));
    if (HasDigest(data, digest)) return Found{.good = std::move(data)};
    FUSION_ASSIGN_OR_RETURN(bool removed, ForgetDamaged(database, digest));
    return Found{.removed = removed};
  });
  const std::string damage =
      absl::StrCat("store ", path_, ": the bytes of blob ", digest, " do not match their digest");
  if (absl::IsNotFound(found.status())) return found.status();
  if (!found.ok())
    return absl::DataLossError(absl::StrCat(damage, ", and it is not removed: ", found.status().message()));
  if (found->good.has_value()) return *found->good;
  {
    std::lock_guard lock(damage_mutex_);
    damaged_blobs_ += damaged_.insert(digest).second ? 1 : 0;
  }
  return absl::DataLossError(absl::StrCat(
      damage, found->removed ? "; it is removed, and built again when it is wanted" : "; restore a backup"));
}

absl::StatusOr<bool> SqliteStore::HasBlob(const std::string& digest) {
  Reader reader(*this);
  return reader->Query("SELECT 1 FROM blobs WHERE digest = ?1", digest).Step();
}

absl::Status SqliteStore::PutArtifact(const std::string& job, int rank, const std::string& digest) {
  return Write([&](Database& database) -> absl::Status {
    absl::Status stored =
        database
            .Query("INSERT OR REPLACE INTO artifacts (job, rank, digest) VALUES (?1, ?2, ?3)", job, rank,
                   digest)
            .Run();
    if (!absl::IsFailedPrecondition(stored)) return stored;
    if (rank < 1)
      return absl::InvalidArgumentError(absl::StrCat("the rank of an artifact is 1 or more, not ", rank));
    return absl::NotFoundError(absl::StrCat("artifact of ", job, ": no such job, or no blob ", digest));
  });
}

absl::StatusOr<std::string> SqliteStore::GetArtifact(const std::string& job, int rank) {
  Reader reader(*this);
  Statement query = reader->Query("SELECT digest FROM artifacts WHERE job = ?1 AND rank = ?2", job, rank);
  FUSION_ASSIGN_OR_RETURN(bool row, query.Step());
  if (!row) return absl::NotFoundError(absl::StrCat("job ", job, " has no artifact of rank ", rank));
  return query.Text(0);
}

}  // namespace fusion
