// What a gRPC connection may do: limits of streams, headers, messages and time. How many there may be is
// server/connection's, and what their frames may ask for.
#pragma once

#include <grpcpp/server_builder.h>

#include <memory>

#include "absl/status/statusor.h"
#include "server/connection/tls_stream.h"
#include "server/identity/tls_files.h"

namespace fusion {

// What holds for all callers, whoever they are.
void SetConnectionLimits(grpc::ServerBuilder& builder, bool tls);

// Null when no files are named. Errors as TlsServer::Make, and InvalidArgument when only some are.
absl::StatusOr<std::unique_ptr<TlsServer>> ListeningTls(const TlsFiles& files);

}  // namespace fusion
