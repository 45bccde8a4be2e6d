// Server is the whole server as one object: store, dispatcher, job runner and the gRPC services over them.
#pragma once

#include <grpcpp/channel.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/rpc/tls_files.h"
#include "library/catalog/catalog.h"
#include "server/dispatch/dispatcher_options.h"
#include "server/identity/access_gate.h"
#include "server/identity/audit_log.h"
#include "server/jobs/job_runner.h"
#include "server/tuner/tuning_registry.h"
#include "server/upkeep/build_cache_keeper.h"

namespace fusion {

struct ServerOptions {
  std::string address;  // "host:port"; port 0: a free one; "": in this process alone
  // Path of a socket for other processes of this user on this machine; "": none. Whoever may write to it may
  // do everything.
  std::string socket;
  std::string data_directory;              // created when absent
  std::shared_ptr<const Catalog> catalog;  // null: the functions built into the program
  bool resume_jobs = true;      // take up unfinished jobs at once; otherwise each when it is watched
  std::string metrics_address;  // of /metrics, /healthz and /readyz (base/monitor/http_server.h); "": none
  TlsFiles tls;                 // all "": without TLS
  bool insecure_any_address = false;  // without TLS at addresses that other machines reach, too
  AccessOptions gate;                 // `tls` is set by the server
  AuditOptions audit;
  DispatcherOptions dispatcher;
  BuildCacheOptions build_cache;
  JobRunnerOptions runner;
  SearchLimits search;
  TunerOptions tuner;
};

// Thread safe.
class Server {
 public:
  // Unavailable: the data directory is in use by another process or cannot be written, or the address is
  // taken; the message says which. FailedPrecondition: without TLS it would listen where other machines reach
  // it. Other statuses are those of OpenSqliteStore, Catalog::BuiltIn and LoadTlsMaterial.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options);
  // Shutdown().
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Returns "host:port" with the real port; "" when in this process alone.
  const std::string& address() const;
  // Returns the address of the metrics' pages; "" when there are none.
  std::string metrics_address() const;
  // Returns the counters of this server.
  ServerMetrics& metrics();
  // For programs that have the server in their own process.
  Store& store();
  // Returns a channel to this server without the network. Calls end with Unavailable after Shutdown(); calls
  // that are held end with an answer. No call may begin while Shutdown() runs: gRPC 1.51's in-process
  // transport then calls a null function.
  std::shared_ptr<grpc::Channel> InProcessChannel();
  // Ends held calls and streams, interrupts pipelines, waits. Unfinished jobs stay in the store. Harmless
  // when repeated.
  void Shutdown();

 private:
  struct Parts;
  explicit Server(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace fusion
