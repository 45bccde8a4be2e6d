// Whose connections count together.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <string>

namespace fusion {

// An address (IPv4), or the network of a site (IPv6, /64).
boost::asio::ip::address NetworkOf(const boost::asio::ip::address& address);

// The same of gRPC's name of a peer, "ipv4:10.0.0.7:51234" or "ipv6:[::1]:51234"; "" of one without an
// address.
std::string NetworkOfPeer(const std::string& peer);

}  // namespace fusion
