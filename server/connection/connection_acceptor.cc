#include "server/connection/connection_acceptor.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <future>
#include <list>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/connection/connection_relay.h"
#include "server/connection/greeting.h"
#include "server/identity/network.h"
#include "server/identity/peer_name.h"
#include "server/identity/rate_limiter.h"

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
constexpr int kPortAttempts = 10;
// A peer that takes nothing for so long is gone; gRPC's own listener sets the same (keepalive timeout).
constexpr int kUnacknowledgedMilliseconds = 20'000;
// Connections that an address may end badly before its next ones are kept waiting, and how long. Callers that
// keep to the protocol have none.
constexpr RateLimit kBadEnds{5, 10};
constexpr std::chrono::seconds kSlowed{1};
// Connections of such addresses are taken together, so that each costs less.
constexpr std::chrono::milliseconds kTogether{5};
constexpr std::chrono::seconds kBetweenLooksAtRelays{5};
constexpr std::chrono::seconds kLastWords{1};

// Which addresses have ended connections badly: broke the protocol, or went beyond its limits. Thread safe.
class BadEnds {
 public:
  using Time = RateLimiter::Time;
  void Note(const std::string& address) {
    const Time now = std::chrono::steady_clock::now();
    if (ends_.Take(address, kBadEnds, now).count() <= 0) return;
    std::lock_guard lock(mutex_);
    slowed_until_[address] = now + kSlowed;
  }
  bool IsSlowed(const std::string& address) {
    std::lock_guard lock(mutex_);
    const auto entry = slowed_until_.find(address);
    return entry != slowed_until_.end() && std::chrono::steady_clock::now() < entry->second;
  }
  void Forget() {
    std::lock_guard lock(mutex_);
    std::erase_if(slowed_until_,
                  [now = std::chrono::steady_clock::now()](const auto& entry) { return entry.second < now; });
  }

 private:
  RateLimiter ends_;
  std::mutex mutex_;
  std::map<std::string, Time> slowed_until_;  // guarded by mutex_
};

absl::Status ListenFailed(const std::string& address, const std::string& why) {
  return absl::UnavailableError(absl::StrCat("cannot listen on ", address, ": ", why));
}

// A listener of an address that is given: port 0 takes a free one. All addresses of this machine, of either
// protocol, are those of both, where it has both.
Error OpenAt(const tcp::endpoint& endpoint, tcp::acceptor* acceptor) {
  const auto open = [&](const tcp::endpoint& at) {
    Error error;
    if (acceptor->is_open()) acceptor->close(error);
    acceptor->open(at.protocol(), error);
    if (!error) acceptor->set_option(tcp::acceptor::reuse_address(true), error);
    if (!error && at.protocol() == tcp::v6())
      acceptor->set_option(asio::ip::v6_only(!at.address().is_unspecified()), error);
    if (!error) acceptor->bind(at, error);
    if (!error) acceptor->listen(asio::socket_base::max_listen_connections, error);
    if (!error) acceptor->native_non_blocking(true, error);
    if (!error) fcntl(acceptor->native_handle(), F_SETFD, FD_CLOEXEC);
    return error;
  };
  if (!endpoint.address().is_unspecified()) return open(endpoint);
  const Error both = open({tcp::v6(), endpoint.port()});
  // Not of IPv4 alone where another program has the port of IPv6: callers would reach either.
  return !both || both == asio::error::address_in_use ? both : open({tcp::v4(), endpoint.port()});
}

// As gRPC names a peer.
std::string NameOf(const tcp::endpoint& peer) {
  const auto address = peer.address();
  if (address.is_v4()) return absl::StrCat("ipv4:", address.to_string(), ":", peer.port());
  if (address.to_v6().is_v4_mapped())
    return absl::StrCat("ipv4:", asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).to_string(),
                        ":", peer.port());
  return absl::StrCat("ipv6:[", address.to_string(), "]:", peer.port());
}

}  // namespace

ConnectionMetrics::ConnectionMetrics(Metrics& registry)
    : open(registry.AddGauge("fusion_connections", "Open connections of clients and workers.")),
      refused(registry.AddCounter("fusion_connections_refused_total",
                                  "Connections that were closed at once because as many as may be were "
                                  "open: of all (limit), or of one address.",
                                  {"reason"})),
      failed(registry.AddCounter("fusion_accept_errors_total",
                                 "Failures to take a connection, such as no free file descriptor.")),
      cut(registry.AddCounter("fusion_connections_cut_total",
                              "Connections that were closed because they broke HTTP/2 or a limit of it.")),
      paused(registry.AddCounter("fusion_connection_pauses_total",
                                 "Times that a connection was read no further for a moment because it had "
                                 "reached a limit of HTTP/2.")),
      waiting(registry.AddGauge("fusion_answers_waiting_bytes",
                                "Memory of answers that are made and not taken yet.")),
      given_up(registry.AddCounter("fusion_answers_given_up_total",
                                   "Answers that their callers did not take in time.")) {
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

  // Listens at each of the addresses, and says why not at the last at which it does not. `port` 0: a free
  // one.
  Error Open(const tcp::resolver::results_type& addresses, uint16_t wanted) {
    Error last;
    listeners.clear();
    port = wanted;
    for (const auto& entry : addresses) {
      Listener& listener = listeners.emplace_back(io);
      if (const Error failed = OpenAt({entry.endpoint().address(), port}, &listener.acceptor); failed) {
        last = failed;
        listeners.pop_back();
      } else {
        port = listener.acceptor.local_endpoint().port();
      }
    }
    return last;
  }

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
    if (!listener->acceptor.is_open()) return;
    bool slowed = false, all = false;
    for (int taken = 0; taken < kMostAtOnce; ++taken) {
      // Not by Asio, which waits for the next connection where one was given up before it was taken.
      tcp::endpoint peer;
      socklen_t size = static_cast<socklen_t>(peer.capacity());
      const int descriptor =
          accept4(listener->acceptor.native_handle(), peer.data(), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (descriptor < 0) {
        all = errno == EAGAIN || errno == EWOULDBLOCK;
        if (all) break;
        if (errno == EINTR || errno == ECONNABORTED || errno == EPROTO) continue;
        return Pause(listener, Error(errno, boost::system::system_category()));
      }
      peer.resize(size);
      slowed |= HandOn(descriptor, peer) == Taken::kSlowed;
    }
    if (slowed && all)
      AcceptAfter(kTogether, listener);
    else
      Wait(listener);
  }

  void AcceptAfter(std::chrono::milliseconds pause, Listener* listener) {
    listener->pause.expires_after(pause);
    listener->pause.async_wait([this, listener](const Error& stopped) {
      if (!stopped) AcceptAll(listener);
    });
  }

  void Pause(Listener* listener, const Error& error) {
    metrics->failed->Add();
    if (Due(&last_failure))
      spdlog::error("a connection could not be taken: {}; the server tries again ten times a second",
                    error.message());
    AcceptAfter(kPauseAfterError, listener);
  }

  enum class Taken { kAtOnce, kSlowed };
  Taken HandOn(int descriptor, const tcp::endpoint& peer) {
    const std::string network = NetworkOf(peer.address()).to_string();
    const bool slowed = ended_badly.IsSlowed(network);
    const Taken taken = slowed ? Taken::kSlowed : Taken::kAtOnce;
    if (slowed && HasLeft(descriptor)) {
      close(descriptor);
      return taken;
    }
    const ConnectionTable::Verdict verdict = table->Take(descriptor, peer.address());
    if (verdict != ConnectionTable::Verdict::kTaken) {
      const bool all = verdict == ConnectionTable::Verdict::kFull;
      metrics->refused.With({all ? "limit" : "address"}).Add();
      if (Due(&last_refusal))
        spdlog::warn("a connection of {} is refused: {} are open{}", peer.address().to_string(),
                     all ? table->limits().most : table->limits().most_of_address, all ? "" : " from there");
      close(descriptor);
      return taken;
    }
    const int yes = 1;
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    setsockopt(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUnacknowledgedMilliseconds,
               sizeof kUnacknowledgedMilliseconds);
    const std::string name = NameOf(peer);
    Greeting::Hooks hooks;
    hooks.done = [this, name, network, protocol = peer.protocol()](
                     tcp::socket client, std::unique_ptr<ClientStream> stream, std::string rest) {
      // By its descriptor alone a socket goes from one context to another.
      asio::post(carrier,
                 [this, name, network, protocol, descriptor = client.release(), rest = std::move(rest),
                  stream = std::make_shared<std::unique_ptr<ClientStream>>(std::move(stream))] {
                   Carry(tcp::socket(carrier, protocol, descriptor), std::move(*stream), name, network, rest);
                 });
    };
    hooks.cut = [this, name, network](std::string_view why) { Cut(name, network, why); };
    tcp::socket client(io, peer.protocol(), descriptor);
    std::unique_ptr<ClientStream> stream =
        tls ? tls->Accept(descriptor) : std::make_unique<PlainStream>(descriptor);
    if (stream)
      std::make_shared<Greeting>(std::move(client), std::move(stream), std::move(hooks))
          ->Start(slowed ? kSlowed : std::chrono::seconds(0));
    return taken;
  }

  // On the carriers' thread.
  void Carry(tcp::socket client, std::unique_ptr<ClientStream> stream, const std::string& name,
             const std::string& network, const std::string& rest) {
    const std::string socket_name = SocketNameOf(name, ++serial);
    ++carried;
    if (watch.began) watch.began(socket_name);
    const std::shared_ptr<void> counted(nullptr, [this, socket_name](void*) {
      --carried;
      if (watch.ended) watch.ended(socket_name);
    });
    std::shared_ptr<void> known;
    ShownCredentials shown;
    shown.peer = name;
    if (tls) {
      shown.tls = true;
      shown.certificate = stream->Certificate();
      known = gate->connections().Add(socket_name, shown.certificate);
    }
    Http2Guard::Door door = [this, shown](std::string_view method, const std::string& authorization) {
      if (shown.tls) {
        ShownCredentials of_call = shown;
        of_call.authorization = authorization;
        if (absl::Status may = gate->CheckAtDoor(of_call, method).status(); !may.ok()) return may;
      }
      // Here it counts as a reset, so that who does not take answers does not ask often either.
      return gate->AdmitAnswer(shown.peer, method);
    };
    const int descriptor = Connect(socket_name);
    if (descriptor < 0) {
      metrics->failed->Add();
      return;
    }
    const auto relay = std::make_shared<ConnectionRelay>(
        std::move(client), std::move(stream), asio::local::stream_protocol::socket(carrier, {}, descriptor),
        std::make_unique<Http2Guard>(Http2Limits(), of_addresses, network, std::move(door)),
        ConnectionRelay::Hooks{
            .cut = [this, name, network, known, counted](std::string_view why) { Cut(name, network, why); },
            .paused = [this, name](std::string_view why) { Paused(name, why); }});
    relays.push_back(relay);
    relay->Start(rest);
  }

  // On the carriers' thread.
  void LookAtRelays() {
    std::erase_if(relays, [now = std::chrono::steady_clock::now()](const auto& entry) {
      const std::shared_ptr<ConnectionRelay> relay = entry.lock();
      if (relay) relay->EndIfStuck(now);
      return !relay;
    });
    look_at_relays.expires_after(kBetweenLooksAtRelays);
    look_at_relays.async_wait([this](const Error& stopped) {
      if (!stopped) LookAtRelays();
    });
  }

  // A connection to the gRPC server, which knows its peer by the name of this end; -1: there is none.
  int Connect(const std::string& own) {
    int ends[2];
    std::lock_guard lock(server_mutex);
    if (!server || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) return -1;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const size_t size = std::min(own.size(), sizeof address.sun_path);
    std::memcpy(address.sun_path, own.data(), size);
    if (bind(ends[0], reinterpret_cast<const sockaddr*>(&address),
             static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + size)) != 0) {
      close(ends[0]);
      close(ends[1]);
      return -1;
    }
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.fd = ends[1];
    server->HandleNewConnection(&connection);
    return ends[0];
  }

  // Thread safe.
  void Cut(const std::string& name, const std::string& network, std::string_view why) {
    metrics->cut->Add();
    ended_badly.Note(network);
    std::lock_guard lock(cut_mutex);
    if (Due(&last_cut)) spdlog::warn("a connection of {} is closed: {}", name, why);
  }

  // On the carriers' thread.
  void Paused(const std::string& name, std::string_view why) {
    metrics->paused->Add();
    if (Due(&last_pause)) spdlog::warn("a connection of {} is read no further for a moment: {}", name, why);
  }

  void Look() {
    table->RemoveClosed();
    metrics->open->Set(table->size());
    ended_badly.Forget();
    gate->answers().GiveUpOverdue(std::chrono::steady_clock::now());
    const size_t given_up = gate->answers().given_up();
    metrics->given_up->Add(static_cast<double>(given_up - std::exchange(answers_given_up, given_up)));
    metrics->waiting->Set(static_cast<double>(gate->answers().bytes()));
    look.expires_after(kBetweenLooks);
    look.async_wait([this](const Error& stopped) {
      if (!stopped) Look();
    });
  }

  const ConnectionLimits wanted;
  ConnectionMetrics* const metrics;
  asio::io_context io{1};
  std::list<Listener> listeners;
  uint16_t port = 0;
  asio::steady_timer look{io};
  std::unique_ptr<ConnectionTable> table;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> server;
  size_t answers_given_up = 0;  // that are counted
  BadEnds ended_badly;
  RateLimiter of_addresses;
  ConnectionWatch watch;         // empty once stopped; the carriers' thread's
  std::atomic<int> carried = 0;  // connections; before `carrier`, whose end ends them
  asio::io_context carrier{1};
  const asio::executor_work_guard<asio::io_context::executor_type> carries{carrier.get_executor()};
  asio::steady_timer look_at_relays{carrier};
  std::vector<std::weak_ptr<ConnectionRelay>> relays;  // the carriers' thread's
  std::thread carrier_thread;
  std::mutex server_mutex;  // guards server
  uint64_t serial = 0;      // of connections to gRPC; the carriers' thread's
  std::unique_ptr<TlsServer> tls;
  AccessGate* gate = nullptr;
  std::chrono::steady_clock::time_point last_failure{}, last_refusal{};
  std::mutex cut_mutex;
  std::chrono::steady_clock::time_point last_cut{};    // guarded by cut_mutex
  std::chrono::steady_clock::time_point last_pause{};  // the carriers' thread's
  std::thread thread;
};

absl::StatusOr<std::unique_ptr<ConnectionAcceptor>> ConnectionAcceptor::Listen(const std::string& address,
                                                                               const ConnectionLimits& limits,
                                                                               ConnectionMetrics* metrics) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return ListenFailed(address, "the port is missing; write HOST:PORT");
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  if (host.empty()) return ListenFailed(address, "the host is missing; write HOST:PORT");
  int wanted = 0;
  if (!absl::SimpleAtoi(address.substr(colon + 1), &wanted) || wanted < 0 || wanted > 65535)
    return ListenFailed(address, "the port is a number from 0 to 65535");
  std::unique_ptr<Parts> parts;
  try {
    parts = std::make_unique<Parts>(limits, metrics);
  } catch (const boost::system::system_error& failure) {
    return ListenFailed(address, failure.code().message());
  }
  Error error;
  tcp::resolver resolver(parts->io);
  const tcp::resolver::results_type found = resolver.resolve(host, "", tcp::resolver::passive, error);
  if (error) return ListenFailed(address, absl::StrCat("the host is not known (", error.message(), ")"));
  // Of port 0, the one that the first address is given is everybody's; another if it is taken at the others.
  for (int attempt = 0; attempt < kPortAttempts; ++attempt) {
    error = parts->Open(found, static_cast<uint16_t>(wanted));
    if (wanted != 0 || parts->listeners.empty() || error != asio::error::address_in_use) break;
  }
  if (parts->listeners.empty())
    return ListenFailed(address, error == asio::error::address_in_use ? "another program uses it"
                                 : error.value() == EADDRNOTAVAIL     ? "it is no address of this machine"
                                                                      : error.message());
  if (error)
    spdlog::warn("{} has {} addresses, and only {} of them can be listened on: {}", address, found.size(),
                 parts->listeners.size(), error.message());
  return std::unique_ptr<ConnectionAcceptor>(new ConnectionAcceptor(std::move(parts)));
}

ConnectionAcceptor::ConnectionAcceptor(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

ConnectionAcceptor::~ConnectionAcceptor() {
  StopListening();
  Stop();
}

int ConnectionAcceptor::port() const { return parts_->port; }

void ConnectionAcceptor::Start(std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> server,
                               std::unique_ptr<TlsServer> tls, AccessGate& gate, ConnectionWatch watch) {
  parts_->server = std::move(server);
  parts_->watch = std::move(watch);
  parts_->tls = std::move(tls);
  parts_->gate = &gate;
  parts_->table = std::make_unique<ConnectionTable>(parts_->wanted);
  for (Parts::Listener& listener : parts_->listeners) parts_->Wait(&listener);
  parts_->Look();
  parts_->thread = std::thread([io = &parts_->io] { io->run(); });
  parts_->LookAtRelays();
  parts_->carrier_thread = std::thread([io = &parts_->carrier] { io->run(); });
}

void ConnectionAcceptor::StopListening() {
  {
    std::lock_guard lock(parts_->server_mutex);
    parts_->server.reset();
  }
  const auto stop = [parts = parts_.get()] {
    Error ignored;
    for (Parts::Listener& listener : parts->listeners) {
      listener.pause.cancel();
      listener.acceptor.close(ignored);
    }
  };
  if (!parts_->thread.joinable()) return stop();
  std::promise<void> done;
  asio::post(parts_->io, [&] {
    stop();
    done.set_value();
  });
  done.get_future().wait();
}

void ConnectionAcceptor::Stop() {
  // What gRPC has said last is on its way to clients.
  const auto patience = std::chrono::steady_clock::now() + kLastWords;
  while (parts_->carried > 0 && std::chrono::steady_clock::now() < patience)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  parts_->io.stop();
  parts_->carrier.stop();
  if (parts_->thread.joinable()) parts_->thread.join();
  if (parts_->carrier_thread.joinable()) parts_->carrier_thread.join();
  parts_->watch = {};
}

}  // namespace fusion
