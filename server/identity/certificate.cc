#include "server/identity/certificate.h"

#include <openssl/x509v3.h>

#include <string_view>

#include "absl/strings/ascii.h"
#include "base/rpc/x509.h"

namespace fusion {
namespace {

constexpr std::string_view kScheme = "fusion://", kProxy = "proxy";
constexpr char kWhatIsRight[] =
    "it must have one subject alternative name such as URI:fusion://user/eva (or worker, admin or proxy), "
    "with "
    "a name of letters, digits and . _ @ -; deploy/make-certificates.sh makes such certificates";

// Reads "fusion://worker/gpu1" as the worker gpu1. False: it names nobody.
bool ReadName(std::string_view uri, CertificateIdentity* identity) {
  uri.remove_prefix(kScheme.size());
  const size_t slash = uri.find('/');
  if (slash == std::string_view::npos) return false;
  const std::string_view kind = uri.substr(0, slash), name = uri.substr(slash + 1);
  if (!IsPrincipalName(name)) return false;
  if (kind == kProxy) {
    identity->proxy = std::string(name);
    return true;
  }
  for (Role role : {Role::kUser, Role::kWorker, Role::kAdmin}) {
    if (kind != absl::AsciiStrToLower(RoleName(role))) continue;
    identity->principal = Principal{std::string(name), role, Principal::How::kCertificate};
    return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<CertificateIdentity> ReadCertificateIdentity(const std::string& pem) {
  const std::vector<CertificatePointer> certificates = ReadCertificates(pem);
  if (certificates.empty()) return absl::UnauthenticatedError("the client certificate cannot be read");
  const X509& certificate = *certificates.front();
  CertificateIdentity identity;
  int names_of_ours = 0;
  bool named = false;
  auto* names =
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(names); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names, i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* uri = name->d.uniformResourceIdentifier;
    const std::string_view text(reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
                                static_cast<size_t>(ASN1_STRING_length(uri)));
    if (!text.starts_with(kScheme)) continue;
    ++names_of_ours;
    named = ReadName(text, &identity);
  }
  GENERAL_NAMES_free(names);
  if (names_of_ours != 1 || !named)
    return absl::UnauthenticatedError(std::string("the client certificate names nobody: ") + kWhatIsRight);
  identity.fingerprint = FingerprintOf(certificate);
  identity.not_before = TimeOf(X509_get0_notBefore(&certificate));
  identity.not_after = TimeOf(X509_get0_notAfter(&certificate));
  return identity;
}

}  // namespace fusion
