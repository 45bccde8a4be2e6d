#include "server/connection/greeting.h"

#include <array>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <utility>

#include "server/connection/http2_guard.h"

namespace fusion {
namespace {

using boost::asio::ip::tcp;
using Error = boost::system::error_code;
using State = ClientStream::State;

constexpr std::chrono::seconds kPatience{20};

}  // namespace

struct Greeting::Parts {
  Parts(tcp::socket socket, std::unique_ptr<ClientStream> bytes, Hooks given)
      : client(std::move(socket)),
        stream(std::move(bytes)),
        timer(client.get_executor()),
        hooks(std::move(given)) {}

  void Listen(const std::shared_ptr<Greeting>& self) {
    std::array<char, 4096> bytes;
    for (;;) {
      size_t count = 0;
      const State state = stream->Read(bytes.data(), bytes.size(), &count);
      if (state == State::kEnded) return End();
      if (state != State::kMoved)
        return Wait(self, state == State::kReadable ? tcp::socket::wait_read : tcp::socket::wait_write);
      said.append(bytes.data(), count);
      const size_t known = std::min(said.size(), kHttp2Preface.size());
      if (std::string_view(said).substr(0, known) != kHttp2Preface.substr(0, known)) {
        hooks.cut("it does not speak HTTP/2");
        return End();
      }
      if (known < kHttp2Preface.size()) continue;
      timer.cancel();
      ended = true;
      return hooks.done(std::move(client), std::move(stream), said.substr(known));
    }
  }

  void Wait(const std::shared_ptr<Greeting>& self, tcp::socket::wait_type what) {
    client.async_wait(what, [this, self](const Error& error) {
      if (!error && !ended) Listen(self);
    });
  }

  void End() {
    ended = true;
    Error ignored;
    timer.cancel();
    client.close(ignored);
  }

  tcp::socket client;
  std::unique_ptr<ClientStream> stream;
  boost::asio::steady_timer timer;
  const Hooks hooks;
  std::string said;
  bool ended = false;
};

Greeting::Greeting(tcp::socket client, std::unique_ptr<ClientStream> stream, Hooks hooks)
    : parts_(std::make_unique<Parts>(std::move(client), std::move(stream), std::move(hooks))) {}

Greeting::~Greeting() = default;

void Greeting::Start(std::chrono::steady_clock::duration delay) {
  Parts* const parts = parts_.get();
  const auto listen = [parts, self = shared_from_this()] {
    parts->timer.expires_after(kPatience);
    parts->timer.async_wait([parts, watched = self->weak_from_this()](const Error& stopped) {
      const std::shared_ptr<Greeting> greeting = watched.lock();
      if (!stopped && greeting && !parts->ended) parts->End();
    });
    parts->Listen(self);
  };
  if (delay.count() <= 0) return listen();
  parts->timer.expires_after(delay);
  parts->timer.async_wait([parts, listen](const Error& stopped) {
    if (stopped) return;
    // Whoever did not wait is not listened to.
    if (HasLeft(parts->client.native_handle())) return parts->End();
    listen();
  });
}

}  // namespace fusion
