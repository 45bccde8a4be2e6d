#include "server/identity/tls_connections.h"

#include <utility>

#include "server/identity/peer_name.h"

namespace fusion {

std::shared_ptr<void> TlsConnections::Add(const std::string& socket, std::string certificate) {
  std::string key = socket.substr(1);
  {
    std::lock_guard lock(certificates_->mutex);
    certificates_->of[key] = std::move(certificate);
  }
  return std::shared_ptr<void>(nullptr, [certificates = certificates_, key = std::move(key)](void*) {
    std::lock_guard lock(certificates->mutex);
    certificates->of.erase(key);
  });
}

std::optional<std::string> TlsConnections::CertificateOf(const std::string& name) const {
  const std::string socket = SocketOfName(name);
  if (socket.empty()) return std::nullopt;
  std::lock_guard lock(certificates_->mutex);
  const auto found = certificates_->of.find(socket.substr(1));
  if (found == certificates_->of.end()) return std::nullopt;
  return found->second;
}

}  // namespace fusion
