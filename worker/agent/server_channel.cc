#include "worker/agent/server_channel.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/support/channel_arguments.h>

#include "base/rpc/channel_credentials.h"

namespace fusion {

std::shared_ptr<grpc::Channel> MakeServerChannel(
    const std::string& address, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  // Without these a connection that was cut counts as good until TCP sends again, which after a cut of a
  // minute takes a minute more, and one whose server was replaced meanwhile for a quarter of an hour. Servers
  // allow a ping every 5 s. The second number is also how long TCP keeps what is not acknowledged.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 15000);
  // Otherwise up to two minutes pass between attempts when the server has been away for long. Times are
  // spread by a fifth, so that many workers do not come back at the same moment.
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 5000);
  FollowServerName(&arguments);
  return grpc::CreateCustomChannel(address, credentials, arguments);
}

}  // namespace fusion
