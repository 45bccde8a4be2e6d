// The gate says who may come in: every call over TLS passes here before its message is read
// (tls_server_credentials.h), and every call passes again in the adapter, which needs to know who calls.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/rpc/tls_files.h"
#include "server/identity/audit_log.h"
#include "server/identity/certificate.h"
#include "server/identity/principal.h"
#include "server/identity/rate_limiter.h"
#include "server/identity/token_registry.h"

namespace fusion {

// A caller shows these credentials.
struct ShownCredentials {
  bool tls = false;           // the call came over TLS
  std::string certificate;    // PEM; TLS has checked who signed it. Empty: none
  std::string authorization;  // from the metadata: "Bearer fus_..."; empty: none
  std::string peer;           // "ipv4:10.0.0.7:51234"; empty: not known
  std::string refusal;        // why none of it counts; empty: it does
};

// A proxy says this of the caller whose call it passes on. No value: the header is missing.
struct ForwardedCaller {
  std::optional<std::string> certificate;  // DER in base64, checked by the proxy; "": the caller showed none
  std::optional<std::string> address;      // "10.0.0.7:51234", "::1:51234"
};

struct AccessOptions {
  bool tls = false;   // the server listens with TLS: only its own process calls without
  std::string proxy;  // the name of the proxy whose word about callers is believed; "": no proxy's is
  RateLimit user_requests{200, 400};
  RateLimit worker_requests{1000, 2000};
  RateLimit admin_requests{200, 400};
  int watched_jobs = 64;           // streams of one principal at a time
  int tuning_programs = 1024;      // programs of one principal that tune at a time
  std::function<Timestamp()> now;  // null: the system's clock
};

// Thread safe. Reads no disk but the file of revoked certificates. The arguments outlive the gate.
class AccessGate {
 public:
  AccessGate(TokenRegistry& tokens, RevokedCertificates& revoked, AuditLog& audit, AccessOptions options);

  // Returns who calls. A token that is shown decides, and must be good; else the certificate decides.
  // Unauthenticated: the caller shows neither, or what it shows is expired or was revoked since the
  // connection was made. Over a listener without TLS, and in the server's own process, everybody is the
  // operator; a token shown there counts, but not if it came from another machine in clear text.
  absl::StatusOr<Principal> Authenticate(const ShownCredentials& shown);

  // Puts the caller that a proxy names in the place of the proxy, if the connection showed the certificate of
  // the proxy that is believed. Any other connection that names a caller is refused when it calls.
  ShownCredentials Believe(ShownCredentials of_connection, const ForwardedCaller& forwarded);

  // Does what Authenticate does, and checks that the caller may call the method at all. Refusals are
  // recorded. For open methods nobody is asked, and the principal has no meaning.
  absl::StatusOr<Principal> CheckAtDoor(const ShownCredentials& shown, std::string_view method);
  // Does what CheckAtDoor does, and checks that the message is of a size that the method takes, and that the
  // principal's rate permits it: ResourceExhausted with google.rpc.RetryInfo. The operator has no limits.
  absl::StatusOr<Principal> Admit(const ShownCredentials& shown, std::string_view method,
                                  size_t request_bytes);
  // Admits one more stream of the principal, for as long as the result lives. ResourceExhausted.
  absl::StatusOr<std::shared_ptr<void>> AdmitStream(const Principal& principal);
  // Does what AdmitStream does, for a program that tunes: there are many, and they stay.
  absl::StatusOr<std::shared_ptr<void>> AdmitProgram(const Principal& principal);

  // Records the end of a call that the table says is audited, and of any that was refused (PermissionDenied,
  // Unauthenticated). `principal` null: nobody known.
  void RecordEnd(const Principal* principal, const ShownCredentials& shown, std::string_view method,
                 const std::string& subject, const absl::Status& status);
  AuditLog& audit() { return audit_; }

 private:
  absl::StatusOr<Principal> AuthenticateToken(const ShownCredentials& shown);
  absl::StatusOr<Principal> AuthenticateCertificate(const std::string& pem);
  // Reads the certificate. Unauthenticated also when it is not good now.
  absl::StatusOr<CertificateIdentity> GoodIdentityOf(const std::string& pem);
  absl::StatusOr<CertificateIdentity> IdentityOf(const std::string& pem);
  Timestamp Now() const;

  TokenRegistry& tokens_;
  RevokedCertificates& revoked_;
  AuditLog& audit_;
  const AccessOptions options_;
  RateLimiter rates_;
  ConcurrencyLimiter streams_;

  std::mutex mutex_;
  std::map<std::string, CertificateIdentity> identities_;  // guarded by mutex_; read already, by PEM
};

}  // namespace fusion
