#include "server/identity/certificate.h"

#include <openssl/x509v3.h>

#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "server/identity/x509.h"

namespace fusion {
namespace {

constexpr std::string_view kScheme = "fusion://";
constexpr char kWhatIsRight[] =
    "it must have one subject alternative name such as URI:fusion://user/eva (or worker, or admin), with a "
    "name "
    "of letters, digits and . _ @ -; deploy/make-certificates.sh makes such certificates";

// "fusion://worker/gpu1" as the worker gpu1.
std::optional<Principal> PrincipalOf(std::string_view uri) {
  uri.remove_prefix(kScheme.size());
  const size_t slash = uri.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::string_view role_text = uri.substr(0, slash), name = uri.substr(slash + 1);
  for (Role role : {Role::kUser, Role::kWorker, Role::kAdmin})
    if (role_text == absl::AsciiStrToLower(RoleName(role)) && IsPrincipalName(name))
      return Principal{std::string(name), role, Principal::How::kCertificate};
  return std::nullopt;
}

}  // namespace

absl::StatusOr<CertificateIdentity> ReadCertificateIdentity(const std::string& pem) {
  const std::vector<CertificatePointer> certificates = ReadCertificates(pem);
  if (certificates.empty()) return absl::UnauthenticatedError("the client certificate cannot be read");
  const X509& certificate = *certificates.front();
  std::optional<Principal> principal;
  int identities = 0;
  auto* names =
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(names); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names, i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* uri = name->d.uniformResourceIdentifier;
    const std::string_view text(reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
                                static_cast<size_t>(ASN1_STRING_length(uri)));
    if (!text.starts_with(kScheme)) continue;
    ++identities;
    principal = PrincipalOf(text);
  }
  GENERAL_NAMES_free(names);
  if (identities != 1 || !principal)
    return absl::UnauthenticatedError(std::string("the client certificate names nobody: ") + kWhatIsRight);
  return CertificateIdentity{*std::move(principal), FingerprintOf(certificate),
                             TimeOf(X509_get0_notBefore(&certificate)),
                             TimeOf(X509_get0_notAfter(&certificate))};
}

}  // namespace fusion
