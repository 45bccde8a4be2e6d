#include "server/identity/shown_credentials.h"

#include <grpc/grpc_security_constants.h>

#include <memory>
#include <utility>
#include <vector>

namespace fusion {
namespace {

constexpr std::string_view kAuthorization = "authorization";
// deploy/proxy/haproxy.cfg writes these two.
constexpr std::string_view kForwardedCertificate = "x-fusion-client-certificate";
constexpr std::string_view kForwardedAddress = "x-fusion-client-address";

// Two headers of one name count as none: a proxy and the server could each believe another one.
constexpr char kTwo[] = "two headers";

std::string Property(const grpc::AuthContext& context, const char* name) {
  const std::vector<grpc::string_ref> values = context.FindPropertyValues(name);
  return values.empty() ? "" : std::string(values.front().data(), values.front().size());
}

}  // namespace

void ShownHeaders::Add(std::string_view name, std::string_view value) {
  if (name == kAuthorization) {
    authorization_ = authorization_.empty() && !value.empty() ? std::string(value) : kTwo;
    return;
  }
  if (name != kForwardedCertificate && name != kForwardedAddress) return;
  if (!forwarded_) forwarded_.emplace();
  std::optional<std::string>& place =
      name == kForwardedCertificate ? forwarded_->certificate : forwarded_->address;
  place = place ? kTwo : std::string(value);
}

ShownCredentials ShownHeaders::Complete(ShownCredentials of_connection, AccessGate& gate) const {
  of_connection.authorization = authorization_;
  return forwarded_ ? gate.Believe(std::move(of_connection), *forwarded_) : of_connection;
}

ShownCredentials ShownBy(const grpc::CallbackServerContext& call, AccessGate& gate) {
  ShownCredentials shown;
  shown.peer = call.peer();
  if (const std::shared_ptr<const grpc::AuthContext> context = call.auth_context()) {
    shown.tls =
        Property(*context, GRPC_TRANSPORT_SECURITY_TYPE_PROPERTY_NAME) == GRPC_SSL_TRANSPORT_SECURITY_TYPE;
    shown.certificate = Property(*context, GRPC_X509_PEM_CERT_PROPERTY_NAME);
  }
  ShownHeaders headers;
  for (const auto& [name, value] : call.client_metadata())
    headers.Add({name.data(), name.size()}, {value.data(), value.size()});
  return headers.Complete(std::move(shown), gate);
}

}  // namespace fusion
