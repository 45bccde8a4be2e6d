// The port that gRPC listens on, and what a connection to it may do: limits of streams, headers, messages and
// time.
#pragma once

#include <grpcpp/server_builder.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/rpc/tls_files.h"
#include "server/identity/access_gate.h"

namespace fusion {

// Sets the limits that hold for all callers.
void SetConnectionLimits(grpc::ServerBuilder& builder, bool tls);

// Makes the credentials of the port: those without TLS when no files are named. Errors are those of
// MakeTlsServerCredentials, and InvalidArgument when only some files are named.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> ListeningCredentials(const TlsFiles& files,
                                                                              AccessGate& gate);

// Says why a server cannot listen at HOST:PORT; gRPC would only say that it cannot. Unavailable: the address
// is none of this machine, or is taken; the message says which.
absl::Status CheckPortIsFree(const std::string& address);

}  // namespace fusion
