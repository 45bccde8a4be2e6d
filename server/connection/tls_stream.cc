#include "server/connection/tls_stream.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

template <typename T, void (*kFree)(T*)>
struct Freed {
  void operator()(T* object) const { kFree(object); }
};
using Bio = std::unique_ptr<BIO, Freed<BIO, BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Freed<X509, X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY, EVP_PKEY_free>>;
using Session = std::unique_ptr<SSL, Freed<SSL, SSL_free>>;

Bio Text(const std::string& pem) { return Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()))); }

Certificate NextCertificate(BIO* text) {
  return Certificate(PEM_read_bio_X509(text, nullptr, nullptr, nullptr));
}

absl::Status Failed(const char* what) {
  const unsigned long error = ERR_get_error();
  ERR_clear_error();
  const char* reason = error == 0 ? nullptr : ERR_reason_error_string(error);
  return absl::InvalidArgumentError(
      absl::StrCat("TLS does not take the ", what, ": ", reason == nullptr ? "no reason given" : reason));
}

// HTTP/2, or no connection (RFC 7540, 3.3).
int ChooseProtocol(SSL*, const unsigned char** chosen, unsigned char* size, const unsigned char* offered,
                   unsigned int bytes, void*) {
  static constexpr unsigned char kHttp2[] = {2, 'h', '2'};
  unsigned char* out = nullptr;
  if (SSL_select_next_proto(&out, size, kHttp2, sizeof kHttp2, offered, bytes) != OPENSSL_NPN_NEGOTIATED)
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  *chosen = out;
  return SSL_TLSEXT_ERR_OK;
}

class TlsStream final : public ClientStream {
 public:
  // The context outlives the session by the session's own count.
  explicit TlsStream(Session session) : session_(std::move(session)) {}

  State Read(char* bytes, size_t size, size_t* count) override {
    ERR_clear_error();
    return StateOf(SSL_read_ex(session_.get(), bytes, size, count), count);
  }

  State Write(const char* bytes, size_t size, size_t* count) override {
    ERR_clear_error();
    return StateOf(SSL_write_ex(session_.get(), bytes, size, count), count);
  }

  std::string Certificate() const override {
    const fusion::Certificate shown(SSL_get1_peer_certificate(session_.get()));
    if (!shown || SSL_get_verify_result(session_.get()) != X509_V_OK) return "";
    const Bio text(BIO_new(BIO_s_mem()));
    if (!text || PEM_write_bio_X509(text.get(), shown.get()) != 1) return "";
    char* data = nullptr;
    const long size = BIO_get_mem_data(text.get(), &data);
    return std::string(data, static_cast<size_t>(std::max(size, 0L)));
  }

 private:
  State StateOf(int result, size_t* count) {
    if (result == 1) return State::kMoved;
    *count = 0;
    switch (SSL_get_error(session_.get(), result)) {
      case SSL_ERROR_WANT_READ:
        return State::kReadable;
      case SSL_ERROR_WANT_WRITE:
        return State::kWritable;
      default:
        ERR_clear_error();
        return State::kEnded;
    }
  }

  const Session session_;
};

}  // namespace

absl::StatusOr<TlsServer::Context> TlsServer::MakeContext(const TlsMaterial& material) {
  ERR_clear_error();
  Context context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  if (!context) return absl::ResourceExhaustedError("there is no memory for TLS");
  SSL_CTX* const made = context.get();
  SSL_CTX_set_min_proto_version(made, TLS1_2_VERSION);
  SSL_CTX_set_options(made,
                      SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  // What gRPC has for TLS 1.2; those of 1.3 are all good.
  SSL_CTX_set_cipher_list(made, "ECDHE+AESGCM:ECDHE+CHACHA20");
  SSL_CTX_set_mode(
      made, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  // Else a client that only changes keys (TLS 1.3, KeyUpdate) would be read for ever, and nobody else.
  SSL_CTX_clear_mode(made, SSL_MODE_AUTO_RETRY);
  // A session that is taken up again would not ask whether the certificate is still good.
  SSL_CTX_set_session_cache_mode(made, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(made, 0);
  SSL_CTX_set_options(made, SSL_OP_NO_TICKET);
  SSL_CTX_set_alpn_select_cb(made, ChooseProtocol, nullptr);

  const Bio chain = Text(material.certificate);
  const Certificate own = NextCertificate(chain.get());
  if (!own || SSL_CTX_use_certificate(made, own.get()) != 1) return Failed("certificate");
  while (const Certificate between = NextCertificate(chain.get()))
    if (SSL_CTX_add1_chain_cert(made, between.get()) != 1)
      return Failed("certificates between it and the authority");
  ERR_clear_error();
  const Bio key_text = Text(material.key);
  const Key key(PEM_read_bio_PrivateKey(key_text.get(), nullptr, nullptr, nullptr));
  if (!key || SSL_CTX_use_PrivateKey(made, key.get()) != 1) return Failed("key");

  const Bio authorities = Text(material.authorities);
  X509_STORE* const store = SSL_CTX_get_cert_store(made);
  int count = 0;
  while (const Certificate authority = NextCertificate(authorities.get())) {
    if (X509_STORE_add_cert(store, authority.get()) != 1 || SSL_CTX_add_client_CA(made, authority.get()) != 1)
      return Failed("authorities");
    ++count;
  }
  ERR_clear_error();
  if (count == 0) return Failed("authorities");
  SSL_CTX_set_verify(made, SSL_VERIFY_PEER, nullptr);
  return context;
}

absl::StatusOr<std::unique_ptr<TlsServer>> TlsServer::Make(const TlsFiles& files) {
  // OpenSSL writes to sockets whose other end may have gone.
  static const bool ignored = signal(SIGPIPE, SIG_IGN) != SIG_ERR;
  if (!ignored) return absl::InternalError("SIGPIPE cannot be ignored");
  if (absl::Status status = LoadTlsMaterial(files, TimeOfDay()).status(); !status.ok()) return status;
  std::unique_ptr<TlsServer> made(new TlsServer(files));
  const std::optional<TlsMaterial> material = made->source_.TakeNew(TimeOfDay());
  if (!material) return absl::UnavailableError("the TLS files changed while they were read; start again");
  absl::StatusOr<Context> context = MakeContext(*material);
  if (!context.ok()) return context.status();
  made->context_ = *std::move(context);
  return made;
}

TlsServer::Context TlsServer::Current() {
  const std::optional<TlsMaterial> material = source_.TakeNew(TimeOfDay());
  std::lock_guard lock(mutex_);
  if (material) {
    absl::StatusOr<Context> context = MakeContext(*material);
    if (context.ok())
      context_ = *std::move(context);
    else
      spdlog::error("{}; the TLS files of before stay in use", std::string(context.status().message()));
  }
  return context_;
}

std::unique_ptr<ClientStream> TlsServer::Accept(int descriptor) {
  const Context context = Current();
  Session session(SSL_new(context.get()));
  if (!session || SSL_set_fd(session.get(), descriptor) != 1) return nullptr;
  SSL_set_accept_state(session.get());
  return std::make_unique<TlsStream>(std::move(session));
}

}  // namespace fusion
