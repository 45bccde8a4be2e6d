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
  // Returns all tokens, oldest first, also those that open nothing any more.
  virtual absl::StatusOr<std::vector<TokenRecord>> Tokens() = 0;
  // Notes when the token was revoked; one that is revoked already stays as it is. NOT_FOUND. Returns the
  // token as it now is.
  virtual absl::StatusOr<TokenRecord> RevokeToken(const std::string& id, Timestamp now) = 0;
  // Appends the entries in their order (the store numbers them). The newest `keep` entries that are OK stay,
  // and the newest `keep` of the others, and for a while up to a hundredth more: refusals, however many, do
  // not wash out what was changed.
  virtual absl::Status AddAuditEntries(const std::vector<AuditRecord>& entries, int64_t keep) = 0;
  // Returns a page of entries by the rules of JobStore::ListJobs.
  virtual absl::StatusOr<AuditPage> ListAuditEntries(int page_size, const std::string& page_token) = 0;
};

}  // namespace fusion
