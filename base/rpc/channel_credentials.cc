#include "base/rpc/channel_credentials.h"

#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <openssl/crypto.h>

#include <chrono>
#include <fstream>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/rpc/address.h"
#include "base/rpc/tls_files.h"
#include "base/rpc/token_secret.h"
#include "base/rpc/x509.h"
#include "base/status_macros.h"

namespace fusion {
namespace {

constexpr unsigned int kRefreshSeconds = 2;

absl::StatusOr<TlsMaterial> Load(const ClientCredentials& shown) {
  if (shown.certificate.empty() != shown.key.empty())
    return absl::InvalidArgumentError("--tls-cert and --tls-key are given together or not at all");
  if (!shown.certificate.empty()) {
    absl::StatusOr<TlsMaterial> material =
        LoadTlsMaterial({shown.certificate, shown.key, shown.authorities, ""}, TimeOfDay());
    if (absl::IsFailedPrecondition(material.status()))
      return absl::UnauthenticatedError(material.status().message());
    if (!material.ok()) return absl::InvalidArgumentError(material.status().message());
    return material;
  }
  TlsMaterial material;
  std::ifstream file(shown.authorities);
  std::ostringstream text;
  text << file.rdbuf();
  material.authorities = text.str();
  if (ReadCertificates(material.authorities).empty())
    return absl::InvalidArgumentError(
        absl::StrCat("--tls-ca ", shown.authorities, ": must hold the certificates of authorities in PEM"));
  return material;
}

std::shared_ptr<grpc::ChannelCredentials> ReloadingCredentials(const ClientCredentials& shown) {
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      shown.key, shown.certificate, shown.authorities, kRefreshSeconds));
  options.watch_root_certs();
  if (!shown.certificate.empty()) options.watch_identity_key_cert_pairs();
  options.set_certificate_verifier(std::make_shared<grpc::experimental::HostNameCertificateVerifier>());
  return grpc::experimental::TlsCredentials(options);
}

}  // namespace

void KeepOpenSslToTheEnd() { OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr); }

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeChannelCredentials(
    const std::string& address, const ClientCredentials& shown) {
  KeepOpenSslToTheEnd();  // a program that tunes has no main() of ours
  FUSION_RETURN_IF_ERROR(CheckServerAddress(address));
  if (!shown.token.empty() && !ParseToken(shown.token))
    return absl::InvalidArgumentError(
        "the token is malformed: it must be fus_<id>_<secret>, as it was given out");
  if (shown.authorities.empty()) {
    if (!shown.certificate.empty() || !shown.key.empty())
      return absl::InvalidArgumentError(
          "--tls-cert and --tls-key take --tls-ca: who signed the server's certificate");
    if (!shown.token.empty() && !IsLoopbackAddress(address))
      return absl::InvalidArgumentError(
          absl::StrCat("the token would travel to ", address,
                       " in clear text; give --tls-ca, the authority that signed the server's certificate"));
    return grpc::InsecureChannelCredentials();
  }
  FUSION_ASSIGN_OR_RETURN(TlsMaterial material, Load(shown));
  std::shared_ptr<grpc::ChannelCredentials> credentials =
      shown.reload ? ReloadingCredentials(shown)
                   : grpc::SslCredentials({material.authorities, material.key, material.certificate});
  if (shown.token.empty()) return credentials;
  return grpc::CompositeChannelCredentials(credentials, grpc::AccessTokenCredentials(shown.token));
}

std::string WhyTokenIsNotShown(const std::string& address, const ClientCredentials& shown) {
  // To other machines it is an error to show one without TLS.
  if (shown.token.empty() || !shown.authorities.empty() || !IsLoopbackAddress(address)) return "";
  return absl::StrCat(
      "the token is not shown to ", address,
      ", which is asked without TLS and takes everybody for its operator; give --tls-ca if it "
      "has TLS");
}

void FollowServerName(grpc::ChannelArguments* arguments) {
  arguments->SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, 1000);
}

absl::StatusOr<std::string> ReadTokenFile(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf()))
    return absl::InvalidArgumentError(absl::StrCat("--token-file ", path, ": cannot be read, or is empty"));
  const std::string token(absl::StripAsciiWhitespace(text.str()));
  if (!ParseToken(token))
    return absl::InvalidArgumentError(
        absl::StrCat("--token-file ", path, ": must hold a token, fus_<id>_<secret>, as it was given out"));
  return token;
}

}  // namespace fusion
