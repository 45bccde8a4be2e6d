// Accepts connections and carries them to the gRPC server, past a guard (connection_relay.h).
//
// gRPC 1.51 can accept by itself, but its listener ends for good at the first error of accept(2), such as a
// moment without a free descriptor, and the server lives on without hearing anybody; nor can it bound how
// many connections there are, nor what their frames ask for.
#pragma once

#include <grpcpp/server_builder.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "library/monitor/metrics.h"
#include "server/connection/connection_table.h"
#include "server/connection/tls_stream.h"
#include "server/identity/access_gate.h"

namespace fusion {

// What the acceptor counts.
struct ConnectionMetrics {
  explicit ConnectionMetrics(Metrics& registry);
  MetricFamily<Gauge>& open;       // as of a second ago at most
  MetricFamily<Counter>& refused;  // {reason}: "limit", "address"
  MetricFamily<Counter>&
      failed;  // accept(2) failed, to be tried again after 100 ms; or gRPC could not be reached
  MetricFamily<Counter>& cut;     // closed by the guard, or by gRPC within a second
  MetricFamily<Counter>& paused;  // times that one was held back by the guard
  MetricFamily<Gauge>& waiting;   // bytes of answers that callers have not taken, as of a second ago at most
  MetricFamily<Counter>& given_up;  // such answers
};

// Who wants to know of a connection, by the name that the gRPC server knows it by (peer_name.h): before gRPC
// does, and when it is no more. Called on another thread, not after ConnectionAcceptor::Stop.
struct ConnectionWatch {
  std::function<void(const std::string&socket_name)> began, ended;
};

// Used by one thread.
class ConnectionAcceptor {
 public:
  // Listens at HOST:PORT: the addresses of the host's name, of which one is enough; "0.0.0.0" and "[::]" are
  // all of this machine, of both protocols. Connections wait until Start(). Unavailable: it is no address of
  // this machine, or is taken; the message says which. The metrics outlive the acceptor.
  static absl::StatusOr<std::unique_ptr<ConnectionAcceptor>> Listen(const std::string& address,
                                                                    const ConnectionLimits& limits,
                                                                    ConnectionMetrics* metrics);
  ~ConnectionAcceptor();  // StopListening(), Stop()

  int port() const;
  // Carries each connection, without delay of small packets. With `tls` each is one of TLS, and calls ask the
  // gate's door. The limits are those of now. The gate outlives the acceptor. Call once.
  void Start(std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> server,
             std::unique_ptr<TlsServer> tls, AccessGate& gate, ConnectionWatch watch);
  // Listens no more, and the gRPC server hears of no further connection; those that it has go on.
  void StopListening();
  // Ends all connections; call when the gRPC server has ended, whose last words have a second to go out.
  // Harmless when repeated, like StopListening.
  void Stop();

 private:
  struct Parts;
  explicit ConnectionAcceptor(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace fusion
