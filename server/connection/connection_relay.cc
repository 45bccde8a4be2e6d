#include "server/connection/connection_relay.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <string>
#include <utility>

namespace fusion {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Unix = asio::local::stream_protocol;
using Error = boost::system::error_code;
using State = ClientStream::State;

// gRPC closes connections that break HTTP/2 at once, and others after a while.
constexpr std::chrono::seconds kSoon{1};
// Of clients that leave what is on its way to them, and what they have to take of it meanwhile.
constexpr std::chrono::seconds kPatience{60};
constexpr size_t kLeastTaken = 60 << 10;
constexpr size_t kChunk = 64 << 10;
constexpr int kTurns = 4;  // of one connection before another's
// GOAWAY of no stream, ENHANCE_YOUR_CALM (RFC 7540, 6.8 and 7).
constexpr std::string_view kGoAway("\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\x0b", 17);

// Bytes on their way: taken from the front.
class Queue {
 public:
  bool empty() const { return begin_ == bytes_.size(); }
  std::string_view front() const { return std::string_view(bytes_).substr(begin_); }
  void Append(std::string_view bytes) {
    // A queue that is never quite empty must not keep what was taken.
    bytes_.erase(0, std::exchange(begin_, 0));
    bytes_.append(bytes);
  }
  // Keeps no memory when all is taken: most connections say nothing most of the time.
  void Take(size_t count) {
    begin_ += count;
    if (!empty()) return;
    std::string().swap(bytes_);
    begin_ = 0;
  }

 private:
  std::string bytes_;
  size_t begin_ = 0;
};

// Of one thread; what a read moves is copied on at once.
char* Scratch() {
  thread_local char bytes[kChunk];
  return bytes;
}

}  // namespace

struct ConnectionRelay::Parts {
  Parts(tcp::socket socket, std::unique_ptr<ClientStream> bytes, Unix::socket to_grpc,
        std::unique_ptr<Http2Guard> of_frames, Hooks given_hooks)
      : client(std::move(socket)),
        stream(std::move(bytes)),
        server(std::move(to_grpc)),
        pause(client.get_executor()),
        guard(std::move(of_frames)),
        hooks(std::move(given_hooks)) {}

  // What a socket is waited for.
  struct Waits {
    bool readable = false, writable = false;          // wanted
    bool for_readable = false, for_writable = false;  // waited for already
  };

  void Run(const std::shared_ptr<ConnectionRelay>& self) {
    client_waits.readable = client_waits.writable = false;
    server_waits.readable = server_waits.writable = false;
    bool moved = true;
    for (int turn = 0; moved && turn < kTurns && !ended; ++turn) {
      moved = FromClient(self);
      if (!ended) moved |= ToServer();
      if (!ended) moved |= FromServer();
      if (!ended) moved |= ToClient();
    }
    if (ended) return;
    if (moved) {
      asio::post(client.get_executor(), [this, self] {
        if (!ended) Run(self);
      });
      return;
    }
    Wait(self, client, &client_waits);
    Wait(self, server, &server_waits);
  }

  template <typename Socket>
  void Wait(const std::shared_ptr<ConnectionRelay>& self, Socket& socket, Waits* waits) {
    const auto wait = [&](typename Socket::wait_type what, bool* waited) {
      if (std::exchange(*waited, true)) return;
      socket.async_wait(what, [this, self, waited](const Error& error) {
        *waited = false;
        if (error || ended) return;
        Run(self);
      });
    };
    if (waits->readable) wait(Socket::wait_read, &waits->for_readable);
    if (waits->writable) wait(Socket::wait_write, &waits->for_writable);
  }

  // Of the client's stream; else it is waited for, or all is over.
  bool Moved(State state) {
    client_waits.readable |= state == State::kReadable;
    client_waits.writable |= state == State::kWritable;
    if (state == State::kEnded) End();
    return state == State::kMoved;
  }

  // Each of these: whether bytes moved.
  bool FromClient(const std::shared_ptr<ConnectionRelay>& self) {
    if (server_deaf) return ThrowAway();
    if (paused || !to_server.empty()) return false;
    // The client is answered as fast as it reads.
    if (to_client.front().size() + guard->answers() > kChunk) return false;
    bool moved = false;
    if (!asked_again) {
      size_t count = 0;
      if (!Moved(stream->Read(Scratch(), kChunk, &count))) return false;
      unseen.Append({Scratch(), count});
      moved = true;
    }
    asked_again = false;
    std::string passed;
    size_t seen = 0;
    const Http2Guard::Verdict verdict =
        guard->FromClient(unseen.front(), std::chrono::steady_clock::now(), &passed, &seen);
    to_server.Append(passed);
    unseen.Take(seen);
    to_client.Append(guard->TakeAnswers());
    if (verdict == Http2Guard::Verdict::kClose) {
      hooks.cut(guard->why());
      size_t count = 0;
      if (to_client.empty()) stream->Write(kGoAway.data(), kGoAway.size(), &count);
      End();
      return false;
    }
    if (verdict == Http2Guard::Verdict::kWait) {
      hooks.paused(guard->why());
      Pause(self, guard->again());
    }
    return moved || seen > 0;
  }

  bool ToServer() {
    if (to_server.empty() || server_deaf) return false;
    Error error;
    const std::string_view bytes = to_server.front();
    const size_t count = server.write_some(asio::buffer(bytes.data(), bytes.size()), error);
    if (error == asio::error::would_block)
      server_waits.writable = true;
    else if (error)
      server_deaf = true;
    else
      to_server.Take(count);
    return !error || server_deaf;
  }

  // gRPC takes nothing more of a connection that it ends; what it has said still goes to the client.
  bool ThrowAway() {
    to_server.Take(to_server.front().size());
    unseen.Take(unseen.front().size());
    size_t count = 0;
    return Moved(stream->Read(Scratch(), kChunk, &count));
  }

  bool FromServer() {
    if (!to_client.empty()) return false;
    Error error;
    const size_t count = server.read_some(asio::buffer(Scratch(), kChunk), error);
    if (error == asio::error::would_block) {
      server_waits.readable = true;
      return false;
    }
    if (error) {
      ServerEnded();  // all that it sent has gone to the client
      return false;
    }
    guard->FromServer({Scratch(), count});
    to_client.Append({Scratch(), count});
    to_client.Append(guard->TakeAnswers());
    return true;
  }

  bool ToClient() {
    if (to_client.empty()) return false;
    const std::string_view bytes = to_client.front();
    size_t count = 0;
    if (!Moved(stream->Write(bytes.data(), bytes.size(), &count))) return false;
    to_client.Take(count);
    written += count;
    return true;
  }

  // Bytes that were written and that the client's side has not acknowledged.
  size_t LeftInKernel() {
    int left = 0;
    return ioctl(client.native_handle(), SIOCOUTQ, &left) == 0 && left > 0 ? static_cast<size_t>(left) : 0;
  }

  void EndIfStuck(std::chrono::steady_clock::time_point now) {
    if (ended) return;
    // A minute begins anew whenever the client has taken all, or enough.
    const size_t left = LeftInKernel(), taken = written - std::min(written, left);
    if ((to_client.empty() && left == 0) || taken >= taken_before + kLeastTaken) {
      taken_before = taken;
      waits_since = now;
    }
    if (now - waits_since < kPatience) return;
    hooks.cut("it does not take what it asked for");
    End();
  }

  // Takes nothing from the client until then.
  void Pause(const std::shared_ptr<ConnectionRelay>& self, Http2Guard::Time until) {
    paused = true;
    pause.expires_at(until);
    pause.async_wait([this, self](const Error& stopped) {
      if (stopped || ended) return;
      paused = false;
      asked_again = true;
      Run(self);
    });
  }

  void ServerEnded() {
    if (std::chrono::steady_clock::now() - begin < kSoon) hooks.cut("gRPC closed it at once");
    End();
  }

  void End() {
    ended = true;
    Error ignored;
    pause.cancel();
    client.close(ignored);
    server.close(ignored);
  }

  tcp::socket client;
  const std::unique_ptr<ClientStream> stream;
  Unix::socket server;
  asio::steady_timer pause;
  const std::unique_ptr<Http2Guard> guard;
  const Hooks hooks;
  const std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
  Queue unseen, to_server, to_client;
  size_t written = 0, taken_before = 0;  // of the client's; then
  std::chrono::steady_clock::time_point waits_since = begin;
  Waits client_waits, server_waits;
  bool ended = false, paused = false;
  bool server_deaf = false;
  bool asked_again = false;  // the guard looks at what is there before more is read
};

ConnectionRelay::ConnectionRelay(tcp::socket client, std::unique_ptr<ClientStream> stream,
                                 Unix::socket server, std::unique_ptr<Http2Guard> guard, Hooks hooks)
    : parts_(std::make_unique<Parts>(std::move(client), std::move(stream), std::move(server),
                                     std::move(guard), std::move(hooks))) {}

ConnectionRelay::~ConnectionRelay() = default;

void ConnectionRelay::Start(std::string_view bytes) {
  Parts* const parts = parts_.get();
  parts->server.non_blocking(true);
  parts->to_server.Append(kHttp2Preface);
  parts->unseen.Append(bytes);
  parts->asked_again = true;
  parts->Run(shared_from_this());
}

void ConnectionRelay::EndIfStuck(std::chrono::steady_clock::time_point now) { parts_->EndIfStuck(now); }

}  // namespace fusion
