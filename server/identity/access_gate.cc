#include "server/identity/access_gate.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/rpc/address.h"
#include "base/rpc/status_conversion.h"
#include "base/rpc/x509.h"
#include "base/status_macros.h"
#include "server/identity/method_access.h"

namespace fusion {
namespace {

constexpr size_t kMaximumIdentities = 4096;
constexpr std::string_view kBearer = "Bearer ";

std::string KeyOf(const Principal& principal) {
  return absl::StrCat(RoleName(principal.role), " ", principal.name);
}

bool FromNetwork(const std::string& peer) {
  return absl::StartsWith(peer, "ipv4:") || absl::StartsWith(peer, "ipv6:") ||
         absl::StartsWith(peer, "unix:");
}

}  // namespace

AccessGate::AccessGate(TokenRegistry& tokens, RevokedCertificates& revoked, AuditLog& audit,
                       AccessOptions options)
    : tokens_(tokens), revoked_(revoked), audit_(audit), options_(std::move(options)) {}

Timestamp AccessGate::Now() const { return options_.now ? options_.now() : TimeOfDay(); }

absl::StatusOr<Principal> AccessGate::Authenticate(const ShownCredentials& shown) {
  if (!shown.refusal.empty()) return absl::UnauthenticatedError(shown.refusal);
  // There is no listener without TLS beside the one with it; should there ever be one, it opens nothing.
  if (options_.tls && !shown.tls && FromNetwork(shown.peer))
    return absl::UnauthenticatedError("this server takes calls over TLS alone");
  if (!shown.authorization.empty()) return AuthenticateToken(shown);
  if (!options_.tls || !shown.tls) return Principal{};
  if (!shown.certificate.empty()) return AuthenticateCertificate(shown.certificate);
  return absl::UnauthenticatedError(
      "this server asks who calls: show a client certificate (--tls-cert, --tls-key) or a token "
      "($FUSION_TOKEN, "
      "--token-file)");
}

absl::StatusOr<Principal> AccessGate::AuthenticateToken(const ShownCredentials& shown) {
  if (!shown.tls && FromNetwork(shown.peer) && !IsLoopbackPeer(shown.peer))
    return absl::UnauthenticatedError(
        "the token came in clear text over the network; revoke it, and use a server with TLS");
  // Whoever shows a certificate that is revoked has lost its key: he is not asked for more.
  if (shown.tls && !shown.certificate.empty()) {
    absl::StatusOr<CertificateIdentity> identity = IdentityOf(shown.certificate);
    if (identity.ok() && revoked_.Contains(identity->fingerprint))
      return absl::UnauthenticatedError("the client certificate is revoked");
  }
  std::string_view text = shown.authorization;
  if (!text.starts_with(kBearer))
    return absl::UnauthenticatedError("authorization: must be \"Bearer fus_<id>_<secret>\"");
  text.remove_prefix(kBearer.size());
  return tokens_.Verify(text, Now());
}

absl::StatusOr<Principal> AccessGate::AuthenticateCertificate(const std::string& pem) {
  FUSION_ASSIGN_OR_RETURN(CertificateIdentity identity, GoodIdentityOf(pem));
  if (!identity.principal)
    return absl::UnauthenticatedError(
        absl::StrCat("the certificate of the proxy ", identity.proxy,
                     " makes no calls of its own; calls that it passes on say who calls "
                     "(deploy/proxy/haproxy.cfg)"));
  return *identity.principal;
}

ShownCredentials AccessGate::Believe(ShownCredentials of_connection, const ForwardedCaller& forwarded) {
  const auto refuse = [&](std::string why) {
    of_connection.refusal = std::move(why);
    return of_connection;
  };
  absl::StatusOr<CertificateIdentity> proxy = absl::UnauthenticatedError("");
  if (of_connection.tls && !of_connection.certificate.empty())
    proxy = GoodIdentityOf(of_connection.certificate);
  if (!proxy.ok() || proxy->principal || proxy->proxy != options_.proxy)
    return refuse(
        "the call says for whom it is passed on, and does not come from the proxy that the server believes "
        "(--proxy-identity)");
  if (!forwarded.certificate || !forwarded.address)
    return refuse(
        "the proxy says only one of the caller's certificate and address; see "
        "deploy/proxy/haproxy.cfg");
  const std::string peer = PeerOfAddress(*forwarded.address);
  if (peer.empty()) return refuse("the proxy gives an address of the caller that is none");
  of_connection.peer = peer;
  of_connection.certificate.clear();
  if (!forwarded.certificate->empty()) {
    of_connection.certificate = PemOfBase64(*forwarded.certificate);
    if (of_connection.certificate.empty())
      return refuse("the proxy gives a certificate of the caller that cannot be read");
  }
  return of_connection;
}

absl::StatusOr<CertificateIdentity> AccessGate::GoodIdentityOf(const std::string& pem) {
  absl::StatusOr<CertificateIdentity> identity = IdentityOf(pem);
  if (!identity.ok()) return identity.status();
  // TLS looked when the connection was made; since then the time may have ended.
  const Timestamp now = Now();
  if (now > identity->not_after)
    return absl::UnauthenticatedError("the client certificate has expired; renew it");
  if (now < identity->not_before) return absl::UnauthenticatedError("the client certificate is not good yet");
  if (revoked_.Contains(identity->fingerprint))
    return absl::UnauthenticatedError("the client certificate is revoked");
  return identity;
}

absl::StatusOr<CertificateIdentity> AccessGate::IdentityOf(const std::string& pem) {
  {
    std::lock_guard lock(mutex_);
    if (auto known = identities_.find(pem); known != identities_.end()) return known->second;
  }
  absl::StatusOr<CertificateIdentity> identity = ReadCertificateIdentity(pem);
  if (!identity.ok()) return identity;
  std::lock_guard lock(mutex_);
  if (identities_.size() >= kMaximumIdentities) identities_.clear();
  identities_[pem] = *identity;
  return identity;
}

absl::StatusOr<Principal> AccessGate::CheckAtDoor(const ShownCredentials& shown, std::string_view method) {
  if (const MethodAccess* row = FindMethodAccess(method); row != nullptr && row->open) return Principal{};
  absl::StatusOr<Principal> principal = Authenticate(shown);
  if (!principal.ok()) {
    RecordEnd(nullptr, shown, method, "", principal.status());
    return principal;
  }
  if (absl::Status may = CheckMayCall(*principal, method); !may.ok()) {
    RecordEnd(&*principal, shown, method, "", may);
    return may;
  }
  return principal;
}

absl::StatusOr<Principal> AccessGate::Admit(const ShownCredentials& shown, std::string_view method,
                                            size_t request_bytes) {
  absl::StatusOr<Principal> principal = CheckAtDoor(shown, method);
  if (!principal.ok() || principal->how == Principal::How::kOperator) return principal;
  const MethodAccess* row = FindMethodAccess(method);
  if (row != nullptr && request_bytes > row->maximum_request_bytes)
    return absl::ResourceExhaustedError(absl::StrCat("the request has ", request_bytes, " bytes; ",
                                                     std::string(method), " takes at most ",
                                                     row->maximum_request_bytes));
  const RateLimit& limit = principal->role == Role::kUser     ? options_.user_requests
                           : principal->role == Role::kWorker ? options_.worker_requests
                                                              : options_.admin_requests;
  const std::chrono::duration<double> delay =
      rates_.Take(KeyOf(*principal), limit, std::chrono::steady_clock::now());
  if (delay.count() > 0)
    return RetryLater(
        absl::StrCat(principal->name, " sends more than ", limit.per_second,
                     " requests a second; try again in ", std::ceil(delay.count() * 1000), " ms"),
        delay);
  return principal;
}

absl::StatusOr<std::shared_ptr<void>> AccessGate::AdmitStream(const Principal& principal) {
  if (principal.how == Principal::How::kOperator) return std::make_shared<int>(0);
  std::shared_ptr<void> ticket = streams_.Enter(KeyOf(principal), options_.watched_jobs);
  if (ticket) return ticket;
  return RetryLater(absl::StrCat(principal.name, " watches ", options_.watched_jobs,
                                 " jobs already, which is as many as may be; end one first"),
                    std::chrono::seconds(1));
}

absl::StatusOr<std::shared_ptr<void>> AccessGate::AdmitProgram(const Principal& principal) {
  if (principal.how == Principal::How::kOperator) return std::make_shared<int>(0);
  std::shared_ptr<void> ticket =
      streams_.Enter(absl::StrCat("tuning ", KeyOf(principal)), options_.tuning_programs);
  if (ticket) return ticket;
  return RetryLater(absl::StrCat(principal.name, " has ", options_.tuning_programs,
                                 " programs that tune already, which is as many as may be"),
                    std::chrono::seconds(10));
}

void AccessGate::RecordEnd(const Principal* principal, const ShownCredentials& shown, std::string_view method,
                           const std::string& subject, const absl::Status& status) {
  const MethodAccess* row = FindMethodAccess(method);
  const bool refused = absl::IsPermissionDenied(status) || absl::IsUnauthenticated(status);
  if (!refused && (row == nullptr || !row->audited)) return;
  AuditRecord entry;
  entry.time = Now();
  if (principal != nullptr) {
    entry.principal = principal->name;
    entry.role = RoleName(principal->role);
  }
  entry.peer = shown.peer;
  entry.method = std::string(method);
  entry.subject = subject;
  entry.outcome = absl::StatusCodeToString(status.code());
  audit_.Record(std::move(entry));
}

}  // namespace fusion
