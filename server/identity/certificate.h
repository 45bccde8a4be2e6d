// Reads what a client certificate says: X.509 in PEM.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "db/store/records.h"
#include "server/identity/principal.h"

namespace fusion {

struct CertificateIdentity {
  std::optional<Principal> principal;  // none: the certificate is a proxy's
  std::string proxy;                   // the name of a proxy, which passes on calls of others; "": it is none
  std::string fingerprint;             // SHA-256 of the certificate in DER, 64 hex digits
  Timestamp not_before{};
  Timestamp not_after{};
};

// Reads the first certificate of `pem`. Role and name are those of its one subject alternative name of the
// form URI:fusion://user/NAME, fusion://worker/NAME or fusion://admin/NAME, or it is a proxy's:
// fusion://proxy/NAME. The call does not ask who signed it: TLS has done that. Unauthenticated: the
// certificate cannot be read, or names no role or more than one. Thread safe.
absl::StatusOr<CertificateIdentity> ReadCertificateIdentity(const std::string& pem);

}  // namespace fusion
