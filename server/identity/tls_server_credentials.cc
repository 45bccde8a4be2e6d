#include "server/identity/tls_server_credentials.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/grpc_security_constants.h>
#include <grpc/slice.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "base/status_macros.h"
#include "server/identity/shown_credentials.h"

namespace fusion {
namespace {

std::string Property(const grpc_auth_context* context, const char* name) {
  grpc_auth_property_iterator iterator = grpc_auth_context_find_properties_by_name(context, name);
  const grpc_auth_property* property = grpc_auth_property_iterator_next(&iterator);
  return property == nullptr ? "" : std::string(property->value, property->value_length);
}

std::string_view View(const grpc_slice& slice) {
  return {reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)), GRPC_SLICE_LENGTH(slice)};
}

// gRPC's callbacks get this; gRPC destroys it with the credentials.
struct Door {
  TlsMaterialSource source;
  AccessGate& gate;
};

void DestroyDoor(void* door) { delete static_cast<Door*>(door); }

// gRPC asks at each handshake. The log says what is wrong with new files, and the old ones stay in use.
grpc_ssl_certificate_config_reload_status FetchCertificates(void* door,
                                                            grpc_ssl_server_certificate_config** config) {
  const std::optional<TlsMaterial> material = static_cast<Door*>(door)->source.TakeNew(TimeOfDay());
  if (!material) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
  const grpc_ssl_pem_key_cert_pair pair{material->key.c_str(), material->certificate.c_str()};
  *config = grpc_ssl_server_certificate_config_create(material->authorities.c_str(), &pair, 1);
  return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
}

// gRPC calls this when it has the headers of a call and not yet its message.
void CheckCall(void* door, grpc_auth_context* context, const grpc_metadata* metadata, size_t count,
               grpc_process_auth_metadata_done_cb done, void* user_data) {
  AccessGate& gate = static_cast<Door*>(door)->gate;
  ShownHeaders headers;
  std::string_view method;
  for (size_t i = 0; i < count; ++i) {
    if (View(metadata[i].key) == ":path") method = View(metadata[i].value);
    headers.Add(View(metadata[i].key), View(metadata[i].value));
  }
  // gRPC does not say here from which address the call comes.
  ShownCredentials shown{.tls = true, .certificate = Property(context, GRPC_X509_PEM_CERT_PROPERTY_NAME)};
  const absl::Status status = gate.CheckAtDoor(headers.Complete(std::move(shown), gate), method).status();
  done(user_data, nullptr, 0, nullptr, 0, static_cast<grpc_status_code>(status.code()),
       std::string(status.message()).c_str());
}

// gRPC's C++ layer has no certificates that change; its C layer has.
class ReloadingServerCredentials final : public grpc::ServerCredentials {
 public:
  ReloadingServerCredentials(const TlsFiles& files, AccessGate& gate) {
    auto* door = new Door{TlsMaterialSource(files), gate};
    credentials_ = grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(
            GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY, FetchCertificates, door));
    grpc_server_credentials_set_auth_metadata_processor(credentials_, {CheckCall, DestroyDoor, door});
  }
  ~ReloadingServerCredentials() override { grpc_server_credentials_release(credentials_); }

  // The gate is the one processor that there is.
  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {
    std::abort();
  }

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  grpc_server_credentials* credentials_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeTlsServerCredentials(const TlsFiles& files,
                                                                                  AccessGate& gate) {
  FUSION_RETURN_IF_ERROR(LoadTlsMaterial(files, TimeOfDay()).status());
  return std::make_shared<ReloadingServerCredentials>(files, gate);
}

}  // namespace fusion
