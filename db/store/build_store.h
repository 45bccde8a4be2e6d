// The build cache, blobs and artifacts. Rules for all calls: db/store/store.h.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/store/records.h"

namespace fusion {

class BuildStore {
 public:
  virtual ~BuildStore() = default;

  // Returns the builds among `keys` that are known, by key. A successful build whose binary is no longer
  // stored is not known.
  virtual absl::StatusOr<std::map<std::string, BuildRecord>> FindBuilds(
      const std::vector<std::string>& keys) = 0;
  // Does what FindBuilds does; the builds count as used now, and stay until the job has ended.
  virtual absl::StatusOr<std::map<std::string, BuildRecord>> UseBuilds(const std::string& job,
                                                                       const std::vector<std::string>& keys,
                                                                       Timestamp now) = 0;
  // Removes binaries of builds, the least recently used first, until they have max_bytes together, and the
  // builds with them; at most `limit`, so that other changes need not wait long. These stay: binaries that an
  // unfinished job found in the cache or has a task for; artifacts, which are not counted either; and bytes
  // without a build unless they are from before `unreported_before`, since a worker stores what it built
  // first and reports it then. The file does not become smaller: its free space is used again.
  virtual absl::StatusOr<BuildCacheTrim> TrimBuildCache(int64_t max_bytes, Timestamp unreported_before,
                                                        int limit) = 0;
  // Adds or replaces the build.
  virtual absl::Status PutBuild(const BuildRecord& build) = 0;

  // Returns the digest, "sha256:<hex>". Storing the same bytes again is harmless. INVALID_ARGUMENT:
  // expected_digest is given and differs.
  virtual absl::StatusOr<std::string> PutBlob(std::string_view data, const std::string& expected_digest,
                                              Timestamp now) = 0;
  // NOT_FOUND; DATA_LOSS: the bytes do not match the digest. The bytes of a build are then removed, with the
  // builds that name them, so that they are built again.
  virtual absl::StatusOr<std::string> GetBlob(const std::string& digest) = 0;
  virtual absl::StatusOr<bool> HasBlob(const std::string& digest) = 0;

  // Adds or replaces the artifact. NOT_FOUND: no such job, or no such blob.
  virtual absl::Status PutArtifact(const std::string& job, int rank, const std::string& digest) = 0;
  // Returns the digest of the blob. NOT_FOUND: the job has no artifact of this rank.
  virtual absl::StatusOr<std::string> GetArtifact(const std::string& job, int rank) = 0;
};

}  // namespace fusion
