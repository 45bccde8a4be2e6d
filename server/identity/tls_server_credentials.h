// TLS for the gRPC server: certificates are read again when their files have changed, and the gate sees every
// call before its message is read.
#pragma once

#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "absl/status/statusor.h"
#include "base/rpc/tls_files.h"
#include "server/identity/access_gate.h"

namespace fusion {

// The server asks its callers for a certificate and checks it where there is one; a caller without may still
// show a token. New files count for new connections. The gate outlives the server. Errors are those of
// LoadTlsMaterial.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeTlsServerCredentials(const TlsFiles& files,
                                                                                  AccessGate& gate);

}  // namespace fusion
