// What the caller of a gRPC call shows.
#pragma once

#include <grpcpp/server_context.h>

#include "server/identity/access_gate.h"
#include "server/identity/tls_connections.h"

namespace fusion {

ShownCredentials ShownBy(const grpc::CallbackServerContext& call, const TlsConnections& connections);

}  // namespace fusion
