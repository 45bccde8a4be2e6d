#include "server/identity/token_registry.h"

#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/rpc/token_secret.h"
#include "base/status_macros.h"
#include "server/identity/method_access.h"

namespace fusion {
namespace {

constexpr std::chrono::hours kLongestLifetime{24 * 366 * 100};
constexpr char kUnknown[] =
    "the token is not known here; ask the farm's administrator for one (fusion-client tokens create)";

std::string TextOf(Timestamp time) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", absl::FromUnixMicros(time.time_since_epoch().count()),
                          absl::UTCTimeZone());
}

}  // namespace

absl::Status TokenRegistry::Load() {
  FUSION_ASSIGN_OR_RETURN(std::vector<TokenRecord> tokens, store_.Tokens());
  std::lock_guard lock(mutex_);
  for (TokenRecord& token : tokens) {
    std::string id = token.id;
    tokens_[std::move(id)] = std::move(token);
  }
  return absl::OkStatus();
}

absl::StatusOr<CreatedToken> TokenRegistry::Create(const std::string& principal, Role role,
                                                   std::chrono::duration<double> lifetime, Timestamp now,
                                                   const Scopes& scopes) {
  if (!IsPrincipalName(principal))
    return absl::InvalidArgumentError(
        "principal: must be 1 to 64 letters, digits and the characters . _ @ -, such as eva or "
        "eva@example.org");
  if (!std::isfinite(lifetime.count()) || lifetime.count() < 0 || lifetime > kLongestLifetime)
    return absl::InvalidArgumentError(
        "seconds: must be the seconds that the token is good for, or 0 for ever");
  for (const Scope scope : kAllScopes)
    if (!scopes.all() && scopes.Has(scope) && !HasMethods(role, scope))
      return absl::InvalidArgumentError(absl::StrCat("scopes: there is nothing to ", ScopeName(scope),
                                                     " for the role ",
                                                     absl::AsciiStrToLower(RoleName(role))));
  const TokenText text = MakeTokenText();
  CreatedToken created;
  created.text = FormatToken(text);
  created.record.id = absl::StrCat("tokens/", text.id);
  created.record.principal = principal;
  created.record.role = RoleName(role);
  created.record.secret_hash = HashOfSecret(text.secret);
  created.record.created = now;
  created.record.scopes = scopes.Text();
  if (lifetime.count() > 0)
    created.record.expires = now + std::chrono::ceil<std::chrono::microseconds>(lifetime);
  FUSION_RETURN_IF_ERROR(store_.AddToken(created.record));
  std::lock_guard lock(mutex_);
  tokens_[created.record.id] = created.record;
  return created;
}

absl::StatusOr<TokenRecord> TokenRegistry::Revoke(const std::string& id, Timestamp now) {
  absl::StatusOr<TokenRecord> revoked = store_.RevokeToken(id, now);
  if (!revoked.ok()) return revoked.status();
  std::lock_guard lock(mutex_);
  tokens_[id] = *revoked;
  return revoked;
}

absl::StatusOr<Principal> TokenRegistry::Verify(std::string_view text, Timestamp now) {
  const std::optional<TokenText> shown = ParseToken(text);
  if (!shown)
    return absl::UnauthenticatedError(
        "the token is malformed: it must be fus_<id>_<secret>, as it was given out");
  TokenRecord token;
  {
    std::lock_guard lock(mutex_);
    auto found = tokens_.find(absl::StrCat("tokens/", shown->id));
    if (found != tokens_.end()) token = found->second;
  }
  // Also for an unknown id, so that both take as long.
  const bool known = EqualInConstantTime(
      HashOfSecret(shown->secret), token.secret_hash.empty() ? std::string(64, '0') : token.secret_hash);
  const std::optional<Role> role = ParseRole(token.role);
  if (!known || !role) return absl::UnauthenticatedError(kUnknown);
  if (token.revoked != Timestamp())
    return absl::UnauthenticatedError(absl::StrCat(token.id, " was revoked at ", TextOf(token.revoked)));
  if (token.expires != Timestamp() && token.expires <= now)
    return absl::UnauthenticatedError(absl::StrCat(token.id, " expired at ", TextOf(token.expires)));
  return Principal{token.principal, *role, Principal::How::kToken, Scopes::Stored(token.scopes)};
}

}  // namespace fusion
