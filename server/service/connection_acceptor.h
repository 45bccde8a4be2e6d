// Accepts connections and hands them to the gRPC server.
//
// gRPC 1.51 can do that by itself, but its listener ends for good at the first error of accept(2), such as a
// moment without a free descriptor, and the server lives on without hearing anybody; nor can it bound how
// many connections there are.
#pragma once

#include <grpcpp/server_builder.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "library/monitor/metrics.h"
#include "server/service/connection_table.h"

namespace fusion {

// What the acceptor counts.
struct ConnectionMetrics {
  explicit ConnectionMetrics(Metrics& registry);
  MetricFamily<Gauge>& open;       // as of a second ago at most
  MetricFamily<Counter>& refused;  // {reason}: "limit", "address"
  MetricFamily<Counter>& failed;   // accept(2) failed; tried again after 100 ms
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
  ~ConnectionAcceptor();  // Stop()

  int port() const;
  // Hands on each connection as a descriptor, without delay of small packets. The limits are those of now.
  // Call once.
  void Start(std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> server);
  // Listens no more. What was handed on stays. Harmless when repeated.
  void Stop();

 private:
  struct Parts;
  explicit ConnectionAcceptor(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace fusion
