#include "server/rpc/server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/thread_pool.hpp>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/monitor/monitor.h"
#include "base/rpc/status_conversion.h"
#include "base/status_macros.h"
#include "db/store/database_file.h"
#include "server/dispatch/dispatcher.h"
#include "server/identity/listening.h"
#include "server/jobs/job_watchers.h"
#include "server/metrics/server_metrics.h"
#include "server/rpc/admin_service.h"
#include "server/rpc/fleet_service.h"
#include "server/rpc/listening_port.h"
#include "server/rpc/optimizer_service.h"
#include "server/rpc/rpc_timer.h"
#include "server/rpc/tuner_service.h"
#include "server/rpc/worker_service.h"
#include "server/upkeep/backup.h"
#include "server/upkeep/checkpoint_keeper.h"
#include "server/upkeep/data_directory.h"

namespace fusion {
namespace {

constexpr int kTimerThreads = 4;
// These two wait for the disk most of the time, and what waits together is written together
// (db/store/group_commit.h).
constexpr int kRequestThreads = 8;
// Calls of workers come a thousand at a time. Whoever was written together goes on at the same moment, so
// somebody who submits a job then waits for a processor behind all of these: as many as make a commit worth
// its price, and no more.
int WorkerThreads() { return std::clamp(4 * static_cast<int>(std::thread::hardware_concurrency()), 8, 64); }
constexpr int kSearchThreads = 2;
constexpr int kTunerThreads = 2;
constexpr std::chrono::seconds kShutdownTime{3};

// Settings of the process, made before the first server.
void EnableHealthAndReflection() {
  static std::once_flag once;
  std::call_once(once, [] {
    // gRPC's locks are Abseil's, which where it is built with assertions notes under one lock for all in
    // which order they are taken.
    absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  });
}

}  // namespace

// In the order of construction; destroyed the other way round.
struct Server::Parts {
  ServerMetrics metrics;
  std::unique_ptr<Store> store;
  std::shared_ptr<const Catalog> catalog;
  SystemClock clock;
  JobWatchers watchers;
  std::unique_ptr<AuditLog> audit;
  std::unique_ptr<TokenRegistry> tokens;
  std::unique_ptr<RevokedCertificates> revoked;
  std::unique_ptr<AccessGate> gate;
  boost::asio::thread_pool timers{kTimerThreads};
  boost::asio::thread_pool requests{kRequestThreads};
  boost::asio::thread_pool workers{static_cast<size_t>(WorkerThreads())};
  boost::asio::thread_pool searches{kSearchThreads};
  boost::asio::thread_pool tuners{kTunerThreads};
  std::unique_ptr<Dispatcher> dispatcher;
  std::unique_ptr<BuildCacheKeeper> build_cache;
  std::unique_ptr<CheckpointKeeper> checkpoints;
  std::unique_ptr<SearchPool> search_pool;
  std::unique_ptr<JobRunner> runner;
  TunerMetrics tuner_metrics{metrics.registry};
  std::unique_ptr<TuningRegistry> tunings;
  std::unique_ptr<AdminServiceImpl> admin;
  std::unique_ptr<OptimizerServiceImpl> optimizer;
  std::unique_ptr<FleetServiceImpl> fleet;
  std::unique_ptr<WorkerServiceImpl> worker;
  std::unique_ptr<TunerServiceImpl> tuner;
  std::unique_ptr<grpc::Server> grpc_server;
  std::string address;
  std::atomic<bool> serving{false};
  std::unique_ptr<HttpServer> monitor;  // null: no metrics' pages

  // OK while the store answers and tasks are given out.
  absl::Status Healthy() const {
    if (!dispatcher->running()) return absl::UnavailableError("the server is stopping");
    if (absl::Status answers = store->Statistics().status(); !answers.ok())
      return absl::Status(answers.code(), absl::StrCat("the store does not answer: ", answers.message()));
    return absl::OkStatus();
  }
  absl::Status Ready() const {
    if (!serving) return absl::UnavailableError("the server is starting or stopping");
    return Healthy();
  }
  std::mutex shutdown_mutex;
  bool shut_down = false;  // guarded by shutdown_mutex

  // The store is open.
  absl::Status MakeGate(const ServerOptions& options) {
    audit = std::make_unique<AuditLog>(*store, options.audit);
    tokens = std::make_unique<TokenRegistry>(*store);
    FUSION_RETURN_IF_ERROR(tokens->Load());
    revoked = std::make_unique<RevokedCertificates>(options.tls.revoked);
    FUSION_RETURN_IF_ERROR(revoked->Load());
    AccessOptions gate_options = options.gate;
    gate_options.tls = options.tls != TlsFiles{};
    gate = std::make_unique<AccessGate>(*tokens, *revoked, *audit, gate_options);
    return absl::OkStatus();
  }
};

namespace {

// "127.0.0.1:0" and 4711 to "127.0.0.1:4711".
std::string WithPort(const std::string& address, int port) {
  return absl::StrCat(address.substr(0, address.rfind(':')), ":", port);
}

}  // namespace

// It is long because it lists the parts of a server in the order in which each can begin.
absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options) {
  // A server may end in exit(), in a program that tunes, and log until then: the log has to be older.
  spdlog::default_logger_raw();
  const bool tls = options.tls != TlsFiles{};
  FUSION_RETURN_IF_ERROR(CheckListening(options.address, tls, options.insecure_any_address));
  FUSION_RETURN_IF_ERROR(PrepareDataDirectory(options.data_directory));
  FUSION_RETURN_IF_ERROR(PrepareDumpDirectory(options.runner.dump_directory));
  auto parts = std::make_unique<Parts>();
  // One that nobody connects to is part of a program, whose output is its own.
  const bool is_embedded = options.address.empty() && options.socket.empty();
  if (!ClosedInOrder(DatabasePath(options.data_directory)))
    spdlog::log(is_embedded ? spdlog::level::debug : spdlog::level::info,
                "the database was not closed in order, and is checked before it is opened");
  absl::StatusOr<std::unique_ptr<Store>> store = OpenSqliteStore(DatabasePath(options.data_directory));
  if (absl::IsDataLoss(store.status()))
    return absl::DataLossError(absl::StrCat(store.status().message(), RestoreAdvice(options.data_directory)));
  if (!store.ok()) return store.status();
  parts->store = *std::move(store);
  parts->catalog = options.catalog;
  if (!parts->catalog) {
    FUSION_ASSIGN_OR_RETURN(std::shared_ptr<const Catalog> catalog, Catalog::BuiltIn());
    parts->catalog = std::move(catalog);
  }

  FUSION_RETURN_IF_ERROR(parts->MakeGate(options));
  FUSION_ASSIGN_OR_RETURN(std::shared_ptr<grpc::ServerCredentials> credentials,
                          ListeningCredentials(options.tls, *parts->gate));
  if (!options.address.empty()) {
    FUSION_RETURN_IF_ERROR(CheckPortIsFree(options.address));
  }

  DispatcherOptions dispatching = options.dispatcher;
  dispatching.resume_tasks = options.resume_jobs;
  parts->dispatcher =
      std::make_unique<Dispatcher>(*parts->store, parts->timers.get_executor(), parts->clock, dispatching);
  FUSION_RETURN_IF_ERROR(parts->dispatcher->Start());
  FUSION_RETURN_IF_ERROR(parts->metrics.Watch(*parts->store, *parts->dispatcher));
  parts->build_cache = std::make_unique<BuildCacheKeeper>(*parts->store, parts->timers.get_executor(),
                                                          options.build_cache, &parts->metrics);
  parts->build_cache->Start();
  parts->checkpoints = std::make_unique<CheckpointKeeper>(*parts->store, parts->timers.get_executor());
  parts->checkpoints->Start();
  parts->search_pool = std::make_unique<SearchPool>(options.search);
  parts->runner =
      std::make_unique<JobRunner>(*parts->store, *parts->dispatcher, *parts->search_pool, parts->catalog,
                                  parts->watchers, options.runner, &parts->metrics);
  const ServiceContext context{*parts->store,
                               *parts->dispatcher,
                               *parts->search_pool,
                               parts->catalog,
                               *parts->runner,
                               parts->watchers,
                               *parts->gate,
                               parts->requests,
                               parts->workers,
                               parts->searches,
                               options.runner.dump_directory,
                               &parts->metrics};
  parts->optimizer = std::make_unique<OptimizerServiceImpl>(context);
  parts->fleet = std::make_unique<FleetServiceImpl>(context);
  parts->worker = std::make_unique<WorkerServiceImpl>(context);
  parts->admin = std::make_unique<AdminServiceImpl>(context, *parts->tokens, options.data_directory);
  Parts* const built = parts.get();
  parts->tunings = std::make_unique<TuningRegistry>(
      *parts->store, parts->tuners, options.tuner, &parts->tuner_metrics,
      [built](const std::string& tuning) { built->watchers.Notify(tuning); });
  parts->tuner = std::make_unique<TunerServiceImpl>(context, *parts->tunings);

  // Callers find all jobs of before.
  std::unique_ptr<Server> server(new Server(std::move(parts)));
  Parts* const running = server->parts_.get();
  if (options.resume_jobs) {
    FUSION_RETURN_IF_ERROR(running->runner->ResumeAll());
  }
  EnableHealthAndReflection();
  grpc::ServerBuilder builder;
  int port = 0;
  if (!options.address.empty()) builder.AddListeningPort(options.address, std::move(credentials), &port);
  if (!options.socket.empty())
    builder.AddListeningPort(absl::StrCat("unix:", options.socket), grpc::InsecureServerCredentials());
  SetConnectionLimits(builder, tls);
  builder.RegisterService(running->admin.get());
  builder.RegisterService(running->optimizer.get());
  builder.RegisterService(running->fleet.get());
  builder.RegisterService(running->worker.get());
  builder.RegisterService(running->tuner.get());
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> interceptors;
  interceptors.push_back(MakeRpcTimer(running->metrics.rpc_seconds));
  builder.experimental().SetInterceptorCreators(std::move(interceptors));
  running->grpc_server = builder.BuildAndStart();
  if (!running->grpc_server) return absl::InternalError("the gRPC server does not start; its log says why");
  if (!options.address.empty()) running->address = WithPort(options.address, port);
  if (!options.socket.empty() && chmod(options.socket.c_str(), S_IRUSR | S_IWUSR) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot protect the socket ", options.socket));
  for (const char* name : {"fusion.v1.OptimizerService", "fusion.v1.FleetService", "fusion.v1.WorkerService",
                           "fusion.v1.AdminService", "fusion.v1.TunerService"})
    running->grpc_server->GetHealthCheckService()->SetServingStatus(name, true);
  running->serving = true;
  if (!options.metrics_address.empty()) {
    MonitorOptions monitor;
    monitor.http.address = options.metrics_address;
    monitor.healthy = [running] { return running->Healthy(); };
    monitor.ready = [running] { return running->Ready(); };
    FUSION_ASSIGN_OR_RETURN(std::unique_ptr<HttpServer> pages,
                            StartMonitor(monitor, &running->metrics.registry));
    running->monitor = std::move(pages);
  }
  return server;
}

Server::Server(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Server::~Server() { Shutdown(); }

const std::string& Server::address() const { return parts_->address; }

std::string Server::metrics_address() const { return parts_->monitor ? parts_->monitor->address() : ""; }

ServerMetrics& Server::metrics() { return parts_->metrics; }

Store& Server::store() { return *parts_->store; }

std::shared_ptr<grpc::Channel> Server::InProcessChannel() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt(GRPC_ARG_MAX_METADATA_SIZE, 2 * static_cast<int>(kMaximumErrorBytes));
  return parts_->grpc_server->InProcessChannel(arguments);
}

void Server::Shutdown() {
  std::lock_guard lock(parts_->shutdown_mutex);
  if (parts_->shut_down) return;
  parts_->shut_down = true;
  parts_->serving = false;
  if (parts_->grpc_server) parts_->grpc_server->GetHealthCheckService()->SetServingStatus(false);
  // Calls that wait for something end first, so that the gRPC server need not wait for them.
  parts_->watchers.Close();
  parts_->tunings->Stop();
  parts_->runner->Stop();
  parts_->build_cache->Stop();
  parts_->checkpoints->Stop();
  if (parts_->grpc_server) {
    parts_->grpc_server->Shutdown(std::chrono::system_clock::now() + kShutdownTime);
    parts_->grpc_server->Wait();
  }
  for (boost::asio::thread_pool* pool :
       {&parts_->requests, &parts_->workers, &parts_->searches, &parts_->tuners, &parts_->timers}) {
    pool->stop();
    pool->join();
  }
}

}  // namespace fusion
