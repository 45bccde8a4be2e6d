// The beginning of a connection: until its client has said that it speaks HTTP/2.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "server/connection/client_stream.h"

namespace fusion {

// One connection; closes it when its client says something else, or nothing for 20 s. Used by the thread of
// its io context alone; lives until it has ended, or the context does.
class Greeting : public std::enable_shared_from_this<Greeting> {
 public:
  struct Hooks {
    // The client has greeted, and sent `rest` behind that.
    std::function<void(boost::asio::ip::tcp::socket client, std::unique_ptr<ClientStream> stream,
                       std::string rest)>
        done;
    std::function<void(std::string_view why)> cut;
  };

  // `stream` is of the client's socket, which does not block.
  Greeting(boost::asio::ip::tcp::socket client, std::unique_ptr<ClientStream> stream, Hooks hooks);
  ~Greeting();

  // Listens to the client after `delay`.
  void Start(std::chrono::steady_clock::duration delay);

 private:
  struct Parts;
  const std::unique_ptr<Parts> parts_;
};

}  // namespace fusion
