// The log of what was changed, and what was refused, in the store. A thread of its own writes it, so that no
// call waits for it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

#include "db/store/identity_store.h"
#include "server/identity/rate_limiter.h"

namespace fusion {

struct AuditOptions {
  int64_t keep = 100000;               // newest entries of changes, and as many of refusals
  size_t waiting = 10000;              // most entries that wait to be written; more are counted, not kept
  RateLimit refusals{2, 200};          // all together
  RateLimit refusals_of_one{0.5, 50};  // from one principal, or one address
};

// Thread safe. The store outlives it.
class AuditLog {
 public:
  AuditLog(IdentityStore& store, AuditOptions options);
  // Writes the entries that wait.
  ~AuditLog();

  // Entries whose outcome is not OK are recorded at a limited rate; when some were left out, an entry says
  // how many. Long texts are cut. Returns at once. An entry is on the disk some milliseconds later; a server
  // that is killed before loses it. While the store takes no entries, as on a full disk, as many as may wait
  // do.
  void Record(AuditRecord entry);
  // Returns when everything recorded before is in the store, or could not be stored at the last try.
  void Flush();

 private:
  void Write();
  bool MayRecord(const AuditRecord& entry);

  IdentityStore& store_;
  const AuditOptions options_;
  RateLimiter rates_;

  std::mutex mutex_;
  std::condition_variable wake_, written_;
  std::deque<AuditRecord> waiting_;  // guarded by mutex_
  int64_t left_out_ = 0;             // guarded by mutex_; since the last entry that said so
  uint64_t recorded_ = 0;            // guarded by mutex_; put into waiting_
  uint64_t stored_ = 0;              // guarded by mutex_; of these, taken out and written
  bool failing_ = false;             // guarded by mutex_; the store did not take the last ones
  bool stopping_ = false;            // guarded by mutex_
  std::thread thread_;
};

}  // namespace fusion
