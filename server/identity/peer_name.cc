#include "server/identity/peer_name.h"

#include <unistd.h>

#include <string_view>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

constexpr std::string_view kAbstract = "unix-abstract:", kOurs = "fusion/";
constexpr size_t kMostBytes = 107;  // sun_path, less its end

bool IsHex(char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F') || (c >= 'a' && c <= 'f'); }

// gRPC writes names as URIs.
std::string Unescaped(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && IsHex(text[i + 1]) && IsHex(text[i + 2])) {
      plain += absl::HexStringToBytes(std::string(text.substr(i + 1, 2)));
      i += 2;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

}  // namespace

std::string SocketNameOf(const std::string& peer, uint64_t serial) {
  // Other processes of the machine have such names too.
  std::string name(1, '\0');
  name.append(kOurs);
  absl::StrAppend(&name, getpid(), ".", serial, "/", peer);
  return name.substr(0, kMostBytes);
}

std::string SocketOfName(const std::string& name) {
  if (!name.starts_with(kAbstract)) return "";
  const std::string plain = Unescaped(std::string_view(name).substr(kAbstract.size()));
  return plain.starts_with(kOurs) ? std::string(1, '\0') + plain : "";
}

std::string PeerOfName(const std::string& name) {
  const std::string socket = SocketOfName(name);
  const size_t slash = socket.find('/', 1 + kOurs.size());
  return slash == std::string::npos ? name : socket.substr(slash + 1);
}

}  // namespace fusion
