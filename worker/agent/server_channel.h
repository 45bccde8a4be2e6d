// A worker's connection to its server.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/security/credentials.h>

#include <memory>
#include <string>

namespace fusion {

// The channel notices within 25 s that the server, or the way to it, is gone, also when nobody says so. The
// next attempt to connect begins at most 6 s after one that was refused, and 20 s after one that nobody
// answers. Packets that take up to 7 s each way are no reason to give up.
std::shared_ptr<grpc::Channel> MakeServerChannel(
    const std::string& address, const std::shared_ptr<grpc::ChannelCredentials>& credentials);

}  // namespace fusion
