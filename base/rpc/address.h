// Tells which addresses are of this machine alone, which may be a server's, and how gRPC names a caller's.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fusion {

struct HostPort {
  std::string host;  // without the brackets of an IPv6 address
  int port = 0;
};
// Parses "HOST:PORT" with a port from `least_port` to 65535. InvalidArgument says what is missing or wrong.
absl::StatusOr<HostPort> ParseHostPort(const std::string& address, int least_port = 0);

// Returns whether only this machine reaches "HOST:PORT": localhost, 127.x.x.x, [::1].
bool IsLoopbackAddress(const std::string& address);
// Returns the same for gRPC's name of a peer: "ipv4:127.0.0.1:51234", "ipv6:[::1]:51234",
// "ipv6:%5B::1%5D:51234".
bool IsLoopbackPeer(const std::string& peer);

// Returns gRPC's name of the peer at "10.0.0.7:51234" or "::1:51234", as proxies write them; "" for what is
// no address with a port.
std::string PeerOfAddress(const std::string& address);

// Returns InvalidArgument, which says how an address is written, unless it is HOST:PORT with a port from 1 to
// 65535, or one of gRPC's own names (unix:, dns:, ipv4:, ipv6:), which are left to gRPC.
absl::Status CheckServerAddress(const std::string& address);

}  // namespace fusion
