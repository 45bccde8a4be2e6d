// Streams of TunerService.
#pragma once

#include <grpcpp/channel.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/rpc/channel_credentials.h"
#include "client/tuner/tune_link.h"

namespace fusion::tuning {

// A new connection for each stream, so that Exchange alone decides when one is tried again. InvalidArgument
// and Unauthenticated as MakeChannelCredentials.
absl::StatusOr<TuneDialer> DialServer(const std::string& address, const ClientCredentials& credentials);
// Over a channel that exists.
TuneDialer DialChannel(std::shared_ptr<grpc::Channel> channel);

}  // namespace fusion::tuning
