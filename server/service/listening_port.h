// How the gRPC server listens: limits of connections, streams, headers and messages.
#pragma once

#include <grpcpp/server_builder.h>

#include <memory>

#include "absl/status/statusor.h"
#include "server/identity/access_gate.h"
#include "server/identity/tls_files.h"

namespace fusion {

// What holds for all callers, whoever they are. gRPC 1.51 cannot count connections: the limit of open files
// of the process bounds them.
void SetConnectionLimits(grpc::ServerBuilder& builder, bool tls);

// With TLS when files are named, else without. Errors as MakeTlsServerCredentials. The gate outlives the
// server.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> ListeningCredentials(const TlsFiles& files,
                                                                              AccessGate& gate);

}  // namespace fusion
