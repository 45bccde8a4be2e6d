#include "server/identity/shown_credentials.h"

#include <string>

#include "server/identity/authorization_header.h"
#include "server/identity/peer_name.h"

namespace fusion {

ShownCredentials ShownBy(const grpc::CallbackServerContext& call, const TlsConnections& connections) {
  ShownCredentials shown;
  const std::string name = call.peer();
  shown.peer = PeerOfName(name);
  if (std::optional<std::string> certificate = connections.CertificateOf(name)) {
    shown.tls = true;
    shown.certificate = *std::move(certificate);
  }
  const auto [begin, end] = call.client_metadata().equal_range(
      grpc::string_ref(kAuthorizationHeader.data(), kAuthorizationHeader.size()));
  for (auto header = begin; header != end; ++header)
    AddAuthorization(std::string_view(header->second.data(), header->second.size()), &shown.authorization);
  return shown;
}

}  // namespace fusion
