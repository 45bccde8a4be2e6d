#include "server/identity/network.h"

#include <algorithm>
#include <string_view>

namespace fusion {

namespace ip = boost::asio::ip;

ip::address NetworkOf(const ip::address& address) {
  if (address.is_v4()) return address;
  if (address.to_v6().is_v4_mapped()) return ip::make_address_v4(ip::v4_mapped, address.to_v6());
  ip::address_v6::bytes_type bytes = address.to_v6().to_bytes();
  if (!address.is_loopback()) std::fill(bytes.begin() + 8, bytes.end(), 0);
  return ip::address_v6(bytes);
}

std::string NetworkOfPeer(const std::string& peer) {
  std::string_view text = peer;
  if (!text.starts_with("ipv4:") && !text.starts_with("ipv6:")) return "";
  text.remove_prefix(5);
  text = text.substr(0, text.rfind(':'));
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  boost::system::error_code error;
  const ip::address address = ip::make_address(text, error);
  return error ? "" : NetworkOf(address).to_string();
}

}  // namespace fusion
