// What a gRPC connection may do: limits of streams, headers, messages and time. How many there may be is
// connection_acceptor.h's.
#pragma once

#include <grpcpp/server_builder.h>

#include <memory>

#include "absl/status/statusor.h"
#include "server/identity/access_gate.h"
#include "server/identity/tls_files.h"

namespace fusion {

// What holds for all callers, whoever they are.
void SetConnectionLimits(grpc::ServerBuilder& builder, bool tls);

// With TLS when files are named, else without. Errors as MakeTlsServerCredentials. The gate outlives the
// server.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> ListeningCredentials(const TlsFiles& files,
                                                                              AccessGate& gate);

}  // namespace fusion
