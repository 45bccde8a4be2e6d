// The connections that came over TLS, whose bytes reach the gRPC server in the clear (server/connection).
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace fusion {

// Thread safe.
class TlsConnections {
 public:
  // `socket`: what SocketNameOf() gave. `certificate`: PEM, checked; "": the client has shown none. Until the
  // ticket is destroyed, which may be after this.
  std::shared_ptr<void> Add(const std::string& socket, std::string certificate);
  // Of the peer that gRPC names so; nullopt: no connection over TLS.
  std::optional<std::string> CertificateOf(const std::string& name) const;

 private:
  struct Certificates {
    mutable std::mutex mutex;
    std::map<std::string, std::string> of;  // guarded by mutex; by the name without the zero at its beginning
  };
  const std::shared_ptr<Certificates> certificates_ = std::make_shared<Certificates>();
};

}  // namespace fusion
