// The tokens of this server, in memory and in the store.
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/store/identity_store.h"
#include "server/identity/principal.h"

namespace fusion {

struct CreatedToken {
  TokenRecord record;
  std::string text;  // what its owner shows; kept nowhere
};

// Thread safe. The store outlives it. Nobody else changes tokens in the store while it lives: the store's
// lock sees to that.
class TokenRegistry {
 public:
  explicit TokenRegistry(IdentityStore& store) : store_(store) {}

  // Reads the store. Call once, before the rest.
  absl::Status Load();

  // `lifetime` 0: for ever. The token is stored when this returns. InvalidArgument: the name or the lifetime
  // is not valid, or a scope has nothing that the role may do.
  absl::StatusOr<CreatedToken> Create(const std::string& principal, Role role,
                                      std::chrono::duration<double> lifetime, Timestamp now,
                                      const Scopes& scopes = {});
  // The token opens nothing once this returns. Harmless when repeated. NotFound.
  absl::StatusOr<TokenRecord> Revoke(const std::string& id, Timestamp now);
  // Returns all tokens, oldest first.
  absl::StatusOr<std::vector<TokenRecord>> List() { return store_.Tokens(); }

  // Returns whose token this text is. Reads no disk. Unauthenticated: it is nobody's, or it is expired or
  // revoked; that is told only to a caller that knows the secret.
  absl::StatusOr<Principal> Verify(std::string_view text, Timestamp now);

 private:
  IdentityStore& store_;
  std::mutex mutex_;
  std::map<std::string, TokenRecord> tokens_;  // guarded by mutex_; by id
};

}  // namespace fusion
