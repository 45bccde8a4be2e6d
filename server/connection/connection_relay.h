// Carries the bytes of a connection to the gRPC server and back, past a guard (http2_guard.h).
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string_view>

#include "server/connection/client_stream.h"
#include "server/connection/http2_guard.h"

namespace fusion {

// One connection. Used by the thread of its socket's io context alone; lives until either side ends, or the
// context does.
class ConnectionRelay : public std::enable_shared_from_this<ConnectionRelay> {
 public:
  struct Hooks {
    // That the client is to blame for the end, and how: the guard closed the connection, gRPC did within a
    // second, or the client takes nothing. Called at most once.
    std::function<void(std::string_view why)> cut;
    // That the client is read no further for a moment, because it has reached a limit of the guard.
    std::function<void(std::string_view why)> paused;
  };

  // Both sockets do not block. `stream` is of the client's, whose preface has come.
  ConnectionRelay(boost::asio::ip::tcp::socket client, std::unique_ptr<ClientStream> stream,
                  boost::asio::local::stream_protocol::socket server, std::unique_ptr<Http2Guard> guard,
                  Hooks hooks);
  ~ConnectionRelay();

  // `bytes`: what the client has sent behind the preface.
  void Start(std::string_view bytes);

  // Ends it when for a minute the client has taken less than 60 KB of what is on its way to it: beside what
  // is held where answers are made, the buffers on the way are some megabytes. To be called every few
  // seconds.
  void EndIfStuck(std::chrono::steady_clock::time_point now);

 private:
  struct Parts;
  const std::unique_ptr<Parts> parts_;
};

}  // namespace fusion
