// Addresses of servers: where one may listen, and what may be one.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace fusion {

// Whether only this machine reaches "HOST:PORT": localhost, 127.x.x.x, [::1].
bool IsLoopbackAddress(const std::string& address);
// The same of gRPC's name of a peer: "ipv4:127.0.0.1:51234", "ipv6:[::1]:51234", "ipv6:%5B::1%5D:51234".
bool IsLoopbackPeer(const std::string& peer);

// InvalidArgument, which says how one is written, unless it is HOST:PORT with a port from 1 to 65535, or one
// of gRPC's own names (unix:, dns:, ipv4:, ipv6:), which are left to gRPC.
absl::Status CheckServerAddress(const std::string& address);

// FailedPrecondition, which says what to do: without TLS a server listens on loopback addresses alone,
// because everybody who reaches it may do everything, unless `any_address` was asked for. InvalidArgument: a
// port, or a host, alone.
absl::Status CheckListening(const std::string& address, bool tls, bool any_address);

}  // namespace fusion
