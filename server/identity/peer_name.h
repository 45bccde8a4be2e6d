// How the gRPC server is told who made a connection that was carried to it: by the name of the socket at its
// other end.
#pragma once

#include <cstdint>
#include <string>

namespace fusion {

// Of an abstract socket, one of its own for each `serial`, at most 107 bytes. `peer`: as gRPC calls one,
// "ipv4:10.0.0.7:51234".
std::string SocketNameOf(const std::string& peer, uint64_t serial);

// That name, of what gRPC calls such a socket; "" of another.
std::string SocketOfName(const std::string& name);
// The peer, of what gRPC calls such a socket ("unix-abstract:..."). Another name stays as it is.
std::string PeerOfName(const std::string& name);

}  // namespace fusion
