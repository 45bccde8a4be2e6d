#include "server/identity/shown_credentials.h"

#include <grpc/grpc_security_constants.h>

#include <string>

namespace fusion {
namespace {

std::string Property(const grpc::AuthContext& context, const char* name) {
  const std::vector<grpc::string_ref> values = context.FindPropertyValues(name);
  return values.empty() ? "" : std::string(values.front().data(), values.front().size());
}

}  // namespace

void AddAuthorization(std::string_view value, ShownCredentials* shown) {
  shown->authorization = shown->authorization.empty() && !value.empty() ? std::string(value) : "two headers";
}

ShownCredentials ShownBy(const grpc::CallbackServerContext& call) {
  ShownCredentials shown;
  shown.peer = call.peer();
  if (const std::shared_ptr<const grpc::AuthContext> context = call.auth_context()) {
    shown.tls =
        Property(*context, GRPC_TRANSPORT_SECURITY_TYPE_PROPERTY_NAME) == GRPC_SSL_TRANSPORT_SECURITY_TYPE;
    shown.certificate = Property(*context, GRPC_X509_PEM_CERT_PROPERTY_NAME);
  }
  const auto [begin, end] = call.client_metadata().equal_range(
      grpc::string_ref(kAuthorizationHeader.data(), kAuthorizationHeader.size()));
  for (auto header = begin; header != end; ++header)
    AddAuthorization(std::string_view(header->second.data(), header->second.size()), &shown);
  return shown;
}

}  // namespace fusion
