// A client or a worker shows by these credentials who it is, and knows the server.
#pragma once

#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace fusion {

// Leaves OpenSSL's memory to the kernel. Otherwise OpenSSL takes its tables down in exit(), where threads of
// gRPC may still read a certificate or end a handshake, and crash. Call it at the beginning of main(): an
// earlier use of OpenSSL has settled the matter already. MakeChannelCredentials does it too.
void KeepOpenSslToTheEnd();

struct ClientCredentials {
  std::string authorities;       // PEM file of who signs the server's certificate; "": no TLS
  std::string certificate, key;  // PEM files, both or none
  std::string token;             // "fus_..."; "": none
  bool reload = false;           // read the files again within seconds when they change: for what runs long
};

// Returns credentials for a channel to "host:port". The server's certificate must name the host.
// InvalidArgument: files are missing or wrong, or a token would travel to another machine in clear text.
// Unauthenticated: the certificate has expired. A token is not sent to a server on this machine without TLS,
// which it would tell nothing.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeChannelCredentials(
    const std::string& address, const ClientCredentials& shown);

// Tells people why the server at this address will not be shown the token, though there is one. "": it will
// be shown, or there is none, or MakeChannelCredentials says what is wrong.
std::string WhyTokenIsNotShown(const std::string& address, const ClientCredentials& shown);

// A server that was started again may have another address, as containers do: its name is looked up again
// after a second at the earliest, not after gRPC's 30.
void FollowServerName(grpc::ChannelArguments* arguments);

// The text of a token file, without white space around it. InvalidArgument: it cannot be read, or holds no
// token.
absl::StatusOr<std::string> ReadTokenFile(const std::string& path);

}  // namespace fusion
