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

// Makes a new connection for each stream, so that Exchange alone decides when one is tried again. Fails with
// InvalidArgument and Unauthenticated as MakeChannelCredentials does.
absl::StatusOr<TuneDialer> DialServer(const std::string& address, const ClientCredentials& credentials);
// Dials over a channel that exists.
TuneDialer DialChannel(std::shared_ptr<grpc::Channel> channel);

}  // namespace fusion::tuning
