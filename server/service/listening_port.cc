#include "server/service/listening_port.h"

#include <grpcpp/resource_quota.h>

#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

constexpr int kMaximumMessageBytes = 80 << 20;  // clients send files of up to 64 MiB
constexpr int kMaximumHeaderBytes = 65 << 10;   // of a request; the guard of connections takes less
constexpr int kStreamsOfConnection = 100;       // a worker uses about ten at a time
constexpr int kThreads = 64;                    // of reflection alone: our own methods have pools
constexpr int kSecond = 1000, kMinute = 60 * kSecond;

}  // namespace

void SetConnectionLimits(grpc::ServerBuilder& builder, bool tls) {
  builder.SetMaxReceiveMessageSize(kMaximumMessageBytes);
  builder.SetMaxSendMessageSize(-1);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaximumHeaderBytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kStreamsOfConnection);
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

absl::StatusOr<std::unique_ptr<TlsServer>> ListeningTls(const TlsFiles& files) {
  if (files == TlsFiles{}) return nullptr;
  if (files.certificate.empty() || files.key.empty() || files.authorities.empty())
    return absl::InvalidArgumentError(absl::StrCat("TLS takes --tls-cert, --tls-key and --tls-ca; ",
                                                   files.certificate.empty() ? "--tls-cert"
                                                   : files.key.empty()       ? "--tls-key"
                                                                             : "--tls-ca",
                                                   " is missing"));
  return TlsServer::Make(files);
}

}  // namespace fusion
