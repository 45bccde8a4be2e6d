// Finds the server that a program of ours talks to, and what the program shows there: options, environment,
// configuration file.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "base/rpc/channel_credentials.h"

namespace fusion {

// The options that a person gave; "": none.
struct ConnectionOptions {
  std::string server;
  std::string tls_ca, tls_cert, tls_key, token_file;
};

// The address to use: the option, else $FUSION_SERVER, else "server" in the configuration file
// ($XDG_CONFIG_HOME or ~/.config, fusion/config.json). "" or "embedded" among them gives "": a server in this
// process. InvalidArgument: the configuration file cannot be understood.
absl::StatusOr<std::string> ServerAddress(const ConnectionOptions& options);

// Returns what the client shows to a server: the options, else "tls_ca", "tls_cert", "tls_key" and
// "token_file" in the configuration file. The token is that of the option, else $FUSION_TOKEN, else that of
// the configured file; a certificate or a token file among the options is shown alone. InvalidArgument: the
// configuration file or the token file is wrong.
absl::StatusOr<ClientCredentials> CredentialsOf(const ConnectionOptions& options);

}  // namespace fusion
