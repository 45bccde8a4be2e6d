// TLS for the server: certificates are read again at each handshake when their files have changed, and the
// gate sees every call before its message is read.
#pragma once

#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "absl/status/statusor.h"
#include "server/identity/access_gate.h"
#include "server/identity/tls_files.h"

namespace fusion {

// Errors as LoadTlsMaterial. A certificate of the caller is asked for, and checked when there is one; a
// caller without may still show a token. Connections that exist are untouched by new files. The gate outlives
// the server.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeTlsServerCredentials(const TlsFiles& files,
                                                                                  AccessGate& gate);

}  // namespace fusion
