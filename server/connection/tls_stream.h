// TLS of the server's side. Certificates are read again at each connection when their files have changed.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <mutex>
#include <string>

#include "absl/status/statusor.h"
#include "server/connection/client_stream.h"
#include "server/identity/tls_files.h"

namespace fusion {

// Thread safe.
class TlsServer {
 public:
  // Errors as LoadTlsMaterial, and InvalidArgument where OpenSSL takes what stands in the files for nothing.
  static absl::StatusOr<std::unique_ptr<TlsServer>> Make(const TlsFiles& files);

  // Of a connected, non-blocking socket, which its owner closes later: TLS 1.2 or later, HTTP/2 by ALPN. A
  // certificate of the client is asked for, and checked when there is one. Null: there is no memory.
  std::unique_ptr<ClientStream> Accept(int descriptor);

 private:
  using Context = std::shared_ptr<SSL_CTX>;
  explicit TlsServer(const TlsFiles& files) : source_(files) {}
  static absl::StatusOr<Context> MakeContext(const TlsMaterial& material);
  // Of the files as they are now; when they are wrong, of those before.
  Context Current();

  TlsMaterialSource source_;
  std::mutex mutex_;
  Context context_;  // guarded by mutex_
};

}  // namespace fusion
