#include "server/service/connection_acceptor.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <spdlog/spdlog.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <list>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Error = boost::system::error_code;

constexpr std::chrono::milliseconds kPauseAfterError{100};
constexpr std::chrono::seconds kBetweenLooks{1};
constexpr std::chrono::seconds kBetweenWarnings{10};
// So that one listener of several does not keep the others waiting.
constexpr int kMostAtOnce = 64;
// A peer that takes nothing for so long is gone; gRPC's own listener sets the same (keepalive timeout).
constexpr int kUnacknowledgedMilliseconds = 20'000;

absl::Status ListenFailed(const std::string& address, const std::string& why) {
  return absl::UnavailableError(absl::StrCat("cannot listen on ", address, ": ", why));
}

// A listener of an address that is given: `port` 0 takes a free one. All addresses of this machine are those
// of both protocols, where it has both.
Error OpenAt(tcp::endpoint endpoint, tcp::acceptor* acceptor) {
  Error error;
  const auto open = [&](const tcp::endpoint& at) {
    error.clear();
    if (acceptor->is_open()) acceptor->close(error);
    acceptor->open(at.protocol(), error);
    if (!error) acceptor->set_option(tcp::acceptor::reuse_address(true), error);
    if (!error && at.protocol() == tcp::v6())
      acceptor->set_option(asio::ip::v6_only(!at.address().is_unspecified()), error);
    if (!error) acceptor->bind(at, error);
    if (!error) acceptor->listen(asio::socket_base::max_listen_connections, error);
    if (!error) acceptor->non_blocking(true, error);
    if (!error) fcntl(acceptor->native_handle(), F_SETFD, FD_CLOEXEC);
    return !error;
  };
  if (endpoint.address().is_unspecified() && open({tcp::v6(), endpoint.port()})) return {};
  open(endpoint);
  return error;
}

}  // namespace

ConnectionMetrics::ConnectionMetrics(Metrics& registry)
    : open(registry.AddGauge("fusion_connections", "Open connections of clients and workers.")),
      refused(registry.AddCounter("fusion_connections_refused_total",
                                  "Connections that were closed at once because as many as may be were "
                                  "open: of all (limit), or of one address.",
                                  {"reason"})),
      failed(registry.AddCounter("fusion_accept_errors_total",
                                 "Failures to take a connection, such as no free file descriptor.")) {
  for (const char* reason : {"limit", "address"}) refused.With({reason});
}

// Used by the io thread alone, once it runs.
struct ConnectionAcceptor::Parts {
  struct Listener {
    explicit Listener(asio::io_context& io) : acceptor(io), pause(io) {}
    tcp::acceptor acceptor;
    asio::steady_timer pause;
  };

  Parts(const ConnectionLimits& limits, ConnectionMetrics* counted) : wanted(limits), metrics(counted) {}

  // Whether a thing that was said at `last` may be said again.
  static bool Due(std::chrono::steady_clock::time_point* last) {
    const auto now = std::chrono::steady_clock::now();
    if (*last != std::chrono::steady_clock::time_point{} && now - *last < kBetweenWarnings) return false;
    *last = now;
    return true;
  }

  void Wait(Listener* listener) {
    listener->acceptor.async_wait(tcp::acceptor::wait_read, [this, listener](const Error& error) {
      if (error == asio::error::operation_aborted) return;
      AcceptAll(listener);
    });
  }

  void AcceptAll(Listener* listener) {
    for (int taken = 0; taken < kMostAtOnce; ++taken) {
      Error error;
      tcp::endpoint peer;
      tcp::socket socket(io);
      listener->acceptor.accept(socket, peer, error);
      if (error == asio::error::would_block || error == asio::error::try_again) break;
      // It was given up before it was taken.
      if (error == asio::error::connection_aborted || error == asio::error::interrupted) continue;
      if (error) return Pause(listener, error);
      HandOn(std::move(socket), peer);
    }
    Wait(listener);
  }

  void Pause(Listener* listener, const Error& error) {
    metrics->failed->Add();
    if (Due(&last_failure))
      spdlog::error("a connection could not be taken: {}; the server tries again ten times a second",
                    error.message());
    listener->pause.expires_after(kPauseAfterError);
    listener->pause.async_wait([this, listener](const Error& stopped) {
      if (!stopped) AcceptAll(listener);
    });
  }

  void HandOn(tcp::socket socket, const tcp::endpoint& peer) {
    const ConnectionTable::Verdict verdict = table->Take(socket.native_handle(), peer.address());
    if (verdict != ConnectionTable::Verdict::kTaken) {
      const bool all = verdict == ConnectionTable::Verdict::kFull;
      metrics->refused.With({all ? "limit" : "address"}).Add();
      if (Due(&last_refusal))
        spdlog::warn("a connection of {} is refused: {} are open{}", peer.address().to_string(),
                     all ? table->limits().most : table->limits().most_of_address, all ? "" : " from there");
      return;
    }
    Error ignored;
    socket.non_blocking(true, ignored);
    socket.set_option(tcp::no_delay(true), ignored);
    const int handle = socket.native_handle();
    fcntl(handle, F_SETFD, FD_CLOEXEC);
    setsockopt(handle, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUnacknowledgedMilliseconds,
               sizeof kUnacknowledgedMilliseconds);
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.fd = socket.release(ignored);
    server->HandleNewConnection(&connection);
  }

  void Look() {
    table->RemoveClosed();
    metrics->open->Set(table->size());
    look.expires_after(kBetweenLooks);
    look.async_wait([this](const Error& stopped) {
      if (!stopped) Look();
    });
  }

  const ConnectionLimits wanted;
  ConnectionMetrics* const metrics;
  asio::io_context io{1};
  std::list<Listener> listeners;
  asio::steady_timer look{io};
  std::unique_ptr<ConnectionTable> table;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> server;
  std::chrono::steady_clock::time_point last_failure{}, last_refusal{};
  std::thread thread;
};

absl::StatusOr<std::unique_ptr<ConnectionAcceptor>> ConnectionAcceptor::Listen(const std::string& address,
                                                                               const ConnectionLimits& limits,
                                                                               ConnectionMetrics* metrics) {
  auto parts = std::make_unique<Parts>(limits, metrics);
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return ListenFailed(address, "the port is missing; write HOST:PORT");
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  if (host.empty()) return ListenFailed(address, "the host is missing; write HOST:PORT");
  Error error;
  tcp::resolver resolver(parts->io);
  const tcp::resolver::results_type found =
      resolver.resolve(host, address.substr(colon + 1), tcp::resolver::passive, error);
  if (error) return ListenFailed(address, absl::StrCat("it is no HOST:PORT (", error.message(), ")"));
  // The port that the first one is given is everybody's.
  uint16_t port = 0;
  for (const auto& entry : found) {
    tcp::endpoint endpoint = entry.endpoint();
    if (endpoint.port() == 0) endpoint.port(port);
    Parts::Listener& listener = parts->listeners.emplace_back(parts->io);
    if (const Error failed = OpenAt(endpoint, &listener.acceptor); failed) {
      error = failed;
      parts->listeners.pop_back();
      continue;
    }
    port = listener.acceptor.local_endpoint().port();
  }
  if (parts->listeners.empty())
    return ListenFailed(address,
                        error == asio::error::address_in_use
                            ? "another program uses it"
                            : absl::StrCat("it is no address of this machine (", error.message(), ")"));
  if (error)
    spdlog::warn("{} has {} addresses, and {} of them can be listened on", address, found.size(),
                 parts->listeners.size());
  return std::unique_ptr<ConnectionAcceptor>(new ConnectionAcceptor(std::move(parts)));
}

ConnectionAcceptor::ConnectionAcceptor(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

ConnectionAcceptor::~ConnectionAcceptor() { Stop(); }

int ConnectionAcceptor::port() const { return parts_->listeners.front().acceptor.local_endpoint().port(); }

void ConnectionAcceptor::Start(std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> server) {
  parts_->server = std::move(server);
  parts_->table = std::make_unique<ConnectionTable>(parts_->wanted);
  for (Parts::Listener& listener : parts_->listeners) parts_->Wait(&listener);
  parts_->Look();
  parts_->thread = std::thread([io = &parts_->io] { io->run(); });
}

void ConnectionAcceptor::Stop() {
  if (!parts_->thread.joinable()) return;
  parts_->io.stop();
  parts_->thread.join();
  Error ignored;
  for (Parts::Listener& listener : parts_->listeners) listener.acceptor.close(ignored);
}

}  // namespace fusion
