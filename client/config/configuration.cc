#include "client/config/configuration.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <tuple>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace fusion {
namespace {

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string ConfigurationFile() {
  if (std::string directory = Environment("XDG_CONFIG_HOME"); !directory.empty())
    return absl::StrCat(directory, "/fusion/config.json");
  if (std::string home = Environment("HOME"); !home.empty())
    return absl::StrCat(home, "/.config/fusion/config.json");
  return "";
}

constexpr const char* kKeys[] = {"server", "tls_ca", "tls_cert", "tls_key", "token_file"};

// The string under the key in the configuration file; "" when there is none.
absl::StatusOr<std::string> Configured(const char* key) {
  const std::string path = ConfigurationFile();
  std::ifstream file(path);
  if (path.empty() || !file) return "";
  nlohmann::json json = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object())
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": must be a JSON object, such as {\"server\": \"host:50051\"}"));
  for (const auto& [name, value] : json.items())
    if (std::find(std::begin(kKeys), std::end(kKeys), name) == std::end(kKeys))
      return absl::InvalidArgumentError(absl::StrCat(path, ": there is no \"", absl::CHexEscape(name),
                                                     "\"; there are ", absl::StrJoin(kKeys, ", ")));
  if (!json.contains(key)) return "";
  if (!json[key].is_string())
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": \"", key, "\" must be a string, such as \"",
                     std::string(key) == "server" ? "host:50051" : "/etc/fusion/ca.pem", "\""));
  return json[key].get<std::string>();
}

}  // namespace

absl::StatusOr<std::string> ServerAddress(const ConnectionOptions& options) {
  std::string address = options.server;
  if (address.empty()) address = Environment("FUSION_SERVER");
  if (address.empty()) {
    FUSION_ASSIGN_OR_RETURN(std::string configured, Configured("server"));
    address = configured;
  }
  return address == "embedded" ? "" : address;
}

absl::StatusOr<ClientCredentials> CredentialsOf(const ConnectionOptions& options) {
  ClientCredentials credentials;
  for (auto [key, option, value] : {std::tuple{"tls_ca", &options.tls_ca, &credentials.authorities},
                                    std::tuple{"tls_cert", &options.tls_cert, &credentials.certificate},
                                    std::tuple{"tls_key", &options.tls_key, &credentials.key}}) {
    *value = *option;
    // A token of the command line is not shown together with somebody's configured certificate.
    const bool identity = value != &credentials.authorities;
    if (!value->empty() || (identity && !options.token_file.empty())) continue;
    FUSION_ASSIGN_OR_RETURN(std::string configured, Configured(key));
    *value = configured;
  }
  std::string token_file = options.token_file;
  // Nor is a certificate of the command line with a token from elsewhere, which would decide.
  if (token_file.empty() && !options.tls_cert.empty()) return credentials;
  if (token_file.empty()) {
    credentials.token = Environment("FUSION_TOKEN");
    if (!credentials.token.empty()) return credentials;
    FUSION_ASSIGN_OR_RETURN(std::string configured, Configured("token_file"));
    token_file = configured;
  }
  if (token_file.empty()) return credentials;
  FUSION_ASSIGN_OR_RETURN(std::string token, ReadTokenFile(token_file));
  credentials.token = token;
  return credentials;
}

}  // namespace fusion
