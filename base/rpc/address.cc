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

absl::StatusOr<HostPort> ParseHostPort(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return absl::InvalidArgumentError("the port is missing");
  HostPort parsed;
  absl::string_view host = absl::string_view(address).substr(0, colon);
  parsed.has_brackets = absl::StartsWith(host, "[") && absl::EndsWith(host, "]");
  if (parsed.has_brackets) host = host.substr(1, host.size() - 2);
  if (host.empty()) return absl::InvalidArgumentError("the host is missing");
  parsed.host = std::string(host);
  if (!absl::SimpleAtoi(absl::string_view(address).substr(colon + 1), &parsed.port) || parsed.port < 0 ||
      parsed.port > 65535)
    return absl::InvalidArgumentError("the port is a number from 0 to 65535");
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
  const absl::StatusOr<HostPort> parsed = ParseHostPort(address);
  if (!parsed.ok()) return "";
  in_addr four{};
  if (inet_pton(AF_INET, parsed->host.c_str(), &four) == 1)
    return absl::StrCat("ipv4:", parsed->host, ":", parsed->port);
  in6_addr six{};
  if (inet_pton(AF_INET6, parsed->host.c_str(), &six) != 1) return "";
  return absl::StrCat("ipv6:[", parsed->host, "]:", parsed->port);
}

absl::Status CheckServerAddress(const std::string& address) {
  for (const char* scheme : {"unix:", "unix-abstract:", "dns:", "ipv4:", "ipv6:"})
    if (absl::StartsWith(address, scheme)) return absl::OkStatus();
  const auto wrong = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("'", address, "' is no address of a server: ", what,
                                                   "; write HOST:PORT, such as 127.0.0.1:50051"));
  };
  if (absl::StrContains(address, "://")) return wrong("an address has no scheme");
  const absl::StatusOr<HostPort> parsed = ParseHostPort(address);
  if (parsed.ok() && parsed->port == 0) return wrong("the port is a number from 1 to 65535");
  if (!parsed.ok()) return wrong(parsed.status().message());
  if (absl::StrContains(parsed->host, ":") && !parsed->has_brackets)
    return wrong("an IPv6 address stands in brackets, [::1]:50051");
  return absl::OkStatus();
}

}  // namespace fusion
