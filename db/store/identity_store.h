// Tokens and the audit log. Rules for all calls: db/store/store.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/store/records.h"

namespace fusion {

class IdentityStore {
 public:
  virtual ~IdentityStore() = default;

  // ALREADY_EXISTS: the id is taken.
  virtual absl::Status AddToken(const TokenRecord& token) = 0;
  // All, oldest first, also those that open nothing any more.
  virtual absl::StatusOr<std::vector<TokenRecord>> Tokens() = 0;
  // Notes the time; one that is revoked already stays as it is. NOT_FOUND. Returns the token as it now is.
  virtual absl::StatusOr<TokenRecord> RevokeToken(const std::string& id, Timestamp now) = 0;
  // Appends them in their order (their numbers are the store's). Of those that are OK, and of those that are
  // not, the newest `keep` stay, and for a while up to a hundredth more: who is refused often does not wash
  // out what was changed.
  virtual absl::Status AddAuditEntries(const std::vector<AuditRecord>& entries, int64_t keep) = 0;
  // As ListJobs.
  virtual absl::StatusOr<AuditPage> ListAuditEntries(int page_size, const std::string& page_token) = 0;
};

}  // namespace fusion
