#include "server/rpc/listening_port.h"

#include <grpcpp/resource_quota.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/rpc/address.h"
#include "server/identity/tls_server_credentials.h"

namespace fusion {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Error = boost::system::error_code;

constexpr int kMaximumMessageBytes = 80 << 20;  // clients send files of up to 64 MiB
constexpr int kMaximumHeaderBytes = 64 << 10;   // of a request
constexpr int kStreamsOfConnection = 100;       // a worker uses about ten at a time
constexpr int kThreads = 64;                    // of reflection alone: our own methods have pools
constexpr int kSecond = 1000, kMinute = 60 * kSecond;

}  // namespace

void SetConnectionLimits(grpc::ServerBuilder& builder, bool tls) {
  builder.SetMaxReceiveMessageSize(kMaximumMessageBytes);
  builder.SetMaxSendMessageSize(-1);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaximumHeaderBytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kStreamsOfConnection);
  // Two servers must not share a port: each caller would reach either.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // Whoever connects and says nothing, or pings without end, is cut off; clients ping every 20 s.
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 20 * kSecond);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5 * kSecond);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 3);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, 15 * kMinute);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kMinute);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20 * kSecond);
  // An authority that is trusted no more is asked about at the next handshake only, so connections end. Calls
  // have the second time to finish; streams of events are taken up again.
  if (tls) {
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, 60 * kMinute);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, 10 * kMinute);
  }
  grpc::ResourceQuota quota("fusion-server");
  quota.SetMaxThreads(kThreads);
  builder.SetResourceQuota(quota);
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> ListeningCredentials(const TlsFiles& files,
                                                                              AccessGate& gate) {
  if (files == TlsFiles{}) return grpc::InsecureServerCredentials();
  if (files.certificate.empty() || files.key.empty() || files.authorities.empty())
    return absl::InvalidArgumentError(absl::StrCat("TLS takes --tls-cert, --tls-key and --tls-ca; ",
                                                   files.certificate.empty() ? "--tls-cert"
                                                   : files.key.empty()       ? "--tls-key"
                                                                             : "--tls-ca",
                                                   " is missing"));
  return MakeTlsServerCredentials(files, gate);
}

absl::Status CheckPortIsFree(const std::string& address) {
  const auto failed = [&](const std::string& why) {
    return absl::UnavailableError(absl::StrCat("cannot listen on ", address, ": ", why));
  };
  const absl::StatusOr<HostPort> parsed = ParseHostPort(address);
  if (!parsed.ok()) return failed(absl::StrCat(parsed.status().message(), "; write HOST:PORT"));
  asio::io_context io;
  Error error;
  const auto found = tcp::resolver(io).resolve(parsed->host, "", tcp::resolver::passive, error);
  if (error) return failed(absl::StrCat("the host is not known (", error.message(), ")"));
  // gRPC listens at those addresses of a name that it can, and so is content with one.
  for (const auto& entry : found) {
    tcp::acceptor acceptor(io);
    acceptor.open(entry.endpoint().protocol(), error);
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor.bind({entry.endpoint().address(), static_cast<uint16_t>(parsed->port)}, error);
    if (!error) acceptor.listen(1, error);
    if (!error) return absl::OkStatus();
    if (error == asio::error::address_in_use) return failed("another program uses it");
  }
  return failed(error.value() == EADDRNOTAVAIL ? "it is no address of this machine" : error.message());
}

}  // namespace fusion
