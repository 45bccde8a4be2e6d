// What the caller of a gRPC call shows.
#pragma once

#include <grpcpp/server_context.h>

#include <string>
#include <string_view>

#include "server/identity/access_gate.h"
#include "server/identity/tls_connections.h"

namespace fusion {

inline constexpr std::string_view kAuthorizationHeader = "authorization";

// Of two headers none counts: proxies and servers could each believe another one.
void AddAuthorization(std::string_view value, std::string* authorization);

ShownCredentials ShownBy(const grpc::CallbackServerContext& call, const TlsConnections& connections);

}  // namespace fusion
