#include "base/rpc/address.h"

#include <arpa/inet.h>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace fusion {
namespace {

bool IsLoopbackHost(const std::string& host) {
  if (host == "localhost") return true;
  in_addr four{};
  // Whole addresses alone: "127.1" and "127.0.0.1.example.org" are names.
  if (inet_pton(AF_INET, host.c_str(), &four) == 1) return (ntohl(four.s_addr) >> 24) == 127;
  in6_addr six{};
  if (inet_pton(AF_INET6, host.c_str(), &six) != 1) return false;
  if (IN6_IS_ADDR_V4MAPPED(&six)) return six.s6_addr[12] == 127;
  return IN6_IS_ADDR_LOOPBACK(&six);
}

}  // namespace

absl::StatusOr<HostPort> ParseHostPort(const std::string& address, int least_port) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return absl::InvalidArgumentError("the port is missing");
  HostPort parsed;
  absl::string_view host = absl::string_view(address).substr(0, colon);
  if (absl::StartsWith(host, "[") && absl::EndsWith(host, "]"))
    host = host.substr(1, host.size() - 2);
  else if (absl::StrContains(host, ":"))
    return absl::InvalidArgumentError("an IPv6 address stands in brackets, [::1]:50051");
  if (host.empty()) return absl::InvalidArgumentError("the host is missing");
  parsed.host = std::string(host);
  if (!absl::SimpleAtoi(absl::string_view(address).substr(colon + 1), &parsed.port) ||
      parsed.port < least_port || parsed.port > 65535)
    return absl::InvalidArgumentError(absl::StrCat("the port is a number from ", least_port, " to 65535"));
  return parsed;
}

bool IsLoopbackAddress(const std::string& address) {
  const absl::StatusOr<HostPort> parsed = ParseHostPort(address);
  return parsed.ok() && IsLoopbackHost(parsed->host);
}

bool IsLoopbackPeer(const std::string& peer) {
  absl::string_view address = peer;
  if (!absl::ConsumePrefix(&address, "ipv4:") && !absl::ConsumePrefix(&address, "ipv6:"))
    return absl::StartsWith(peer, "unix:");
  return IsLoopbackAddress(absl::StrReplaceAll(address, {{"%5B", "["}, {"%5D", "]"}}));
}

std::string PeerOfAddress(const std::string& address) {
  const size_t colon = address.rfind(':');
  int port = 0;
  if (colon == std::string::npos || !absl::SimpleAtoi(absl::string_view(address).substr(colon + 1), &port) ||
      port < 0 || port > 65535)
    return "";
  const std::string host = address.substr(0, colon);
  in_addr four{};
  if (inet_pton(AF_INET, host.c_str(), &four) == 1) return absl::StrCat("ipv4:", host, ":", port);
  in6_addr six{};
  return inet_pton(AF_INET6, host.c_str(), &six) == 1 ? absl::StrCat("ipv6:[", host, "]:", port) : "";
}

absl::Status CheckServerAddress(const std::string& address) {
  for (const char* scheme : {"unix:", "unix-abstract:", "dns:", "ipv4:", "ipv6:"})
    if (absl::StartsWith(address, scheme)) return absl::OkStatus();
  const auto wrong = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("'", address, "' is no address of a server: ", what,
                                                   "; write HOST:PORT, such as 127.0.0.1:50051"));
  };
  if (absl::StrContains(address, "://")) return wrong("an address has no scheme");
  const absl::StatusOr<HostPort> parsed = ParseHostPort(address, 1);
  return parsed.ok() ? absl::OkStatus() : wrong(parsed.status().message());
}

}  // namespace fusion
