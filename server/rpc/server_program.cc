#include "server/rpc/server_program.h"

#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/monitor/grpc_log.h"
#include "base/monitor/log.h"
#include "base/monitor/service_manager.h"
#include "base/rpc/address.h"
#include "base/rpc/channel_credentials.h"
#include "server/optimize/search_process.h"
#include "server/rpc/server.h"
#include "server/upkeep/data_directory.h"
#include "server/upkeep/maintenance.h"

namespace fusion {
namespace {

// Many a shell's limit, 1,024, is there for programs that use select(2).
void RaiseFileLimit() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == files.rlim_max) return;
  files.rlim_cur = files.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &files) != 0) spdlog::warn("the limit of open files cannot be raised");
}

}  // namespace

// It is long because each option takes a line to name it and a line to use it.
int RunServerProgram(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == fusion::kSearchProcessArgument)
    return fusion::RunSearchProcess(STDIN_FILENO, STDOUT_FILENO);
  fusion::KeepOpenSslToTheEnd();
  fusion::ServerOptions options;
  options.address = "127.0.0.1:50051";
  options.data_directory = fusion::DefaultDataDirectory();
  uint64_t cache_bytes = static_cast<uint64_t>(options.build_cache.max_bytes);
  double search_seconds = std::chrono::duration<double>(options.search.time).count();
  std::string log_level = "info", log_format = "text";
  std::function<int()> maintenance;

  CLI::App app("Takes graphs from clients, gives work to workers, keeps jobs and measurements.",
               "fusion-server");
  app.set_version_flag("--version", FUSION_VERSION);
  app.add_option("--listen", options.address, "HOST:PORT to listen on; port 0 takes a free one")
      ->capture_default_str();
  app.add_option("--data", options.data_directory,
                 "Folder of the database (default: $FUSION_DATA_DIR, or fusion in "
                 "$XDG_DATA_HOME)")
      ->capture_default_str();
  app.add_option("--tls-cert", options.tls.certificate,
                 "Certificate of this server, PEM; read again when it changes");
  app.add_option("--tls-key", options.tls.key, "Its private key, PEM");
  app.add_option("--tls-ca", options.tls.authorities,
                 "Authorities that sign the certificates of callers, PEM");
  app.add_option("--tls-revoked", options.tls.revoked,
                 "File of revoked certificates, a SHA-256 fingerprint a line; read again when it changes");
  app.add_flag("--insecure-any-address", options.insecure_any_address,
               "Listen without TLS where other machines reach the server: everybody may do everything");
  app.add_option(
      "--proxy-identity", options.gate.proxy,
      "Name of the proxy (its certificate has URI:fusion://proxy/NAME) that is believed when it says "
      "who calls; see deploy/proxy");
  app.add_option("--job-threads", options.runner.threads,
                 "Jobs that run at once; those that wait for a device do not count, nor do a quarter as many "
                 "of users who have fewer running than their share (default: as many as processors, at least "
                 "8)")
      ->check(CLI::Range(1, 256));
  app.add_option("--cache-size", cache_bytes,
                 "Bytes that the binaries of the build cache may have together, as 500M or 20G; those that "
                 "were not used for the "
                 "longest time are removed; 0: no bound (default: 20G)")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 62));
  app.add_option("--search-memory", options.search.memory_bytes,
                 "Bytes of memory that the search of one graph may need, as 2G; a job that needs more fails "
                 "(default: half of the machine's)")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(uint64_t{64} << 20, uint64_t{1} << 62));
  app.add_option("--search-seconds", search_seconds, "Seconds that it may take")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 86400.0));
  app.add_option("--dump-dir", options.runner.dump_directory,
                 "Folder for the text of every stage of every job");
  app.add_option("--log-level", log_level, "debug, info, warn or error")
      ->check(CLI::IsMember({"debug", "info", "warn", "error"}))
      ->capture_default_str();
  app.add_option("--log-format", log_format,
                 "text, or json: one object a line, with ids of jobs, tasks and traces")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  app.add_option(
      "--metrics-listen", options.metrics_address,
      "HOST:PORT of /metrics, /healthz and /readyz over HTTP, such as 127.0.0.1:9464 (default: none)");
  fusion::AddMaintenanceCommands(&app, &maintenance);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (maintenance) return maintenance();
  options.search.time = std::chrono::milliseconds(static_cast<int64_t>(search_seconds * 1000));
  options.build_cache.max_bytes = static_cast<int64_t>(cache_bytes);
  fusion::SetUpLogging(log_format == "json" ? fusion::LogFormat::kJson : fusion::LogFormat::kText, log_level,
                       "fusion-server");
  if (options.address.empty()) {
    spdlog::error("--listen: must be HOST:PORT");
    return 2;
  }

  RaiseFileLimit();
  boost::asio::io_context io;
  boost::asio::signal_set signals(io, SIGINT, SIGTERM);
  std::string listener_error;
  fusion::RouteGrpcLog([&](const std::string& error) {
    boost::asio::post(io, [&, error] {
      listener_error = error;
      signals.cancel();
    });
  });
  absl::StatusOr<std::unique_ptr<fusion::Server>> server = fusion::Server::Start(options);
  if (!server.ok()) {
    spdlog::error("{}", std::string(server.status().message()));
    const bool usage =
        absl::IsInvalidArgument(server.status()) || absl::IsFailedPrecondition(server.status());
    return usage ? 2 : 1;
  }
  if (!(*server)->metrics_address().empty())
    spdlog::info("metrics at http://{}/metrics", (*server)->metrics_address());
  spdlog::info("listening on {}; data in {}", (*server)->address(), options.data_directory);
  if (options.tls == fusion::TlsFiles{} && !fusion::IsLoopbackAddress(options.address))
    spdlog::warn(
        "NO TLS: everybody who reaches {} may submit, cancel and run code on the workers; give --tls-cert, "
        "--tls-key and --tls-ca",
        (*server)->address());
  const auto tell_service_manager = [](const char* state) {
    if (absl::Status told = fusion::TellServiceManager(state); !told.ok())
      spdlog::warn("{}", std::string(told.message()));
  };
  tell_service_manager("READY=1");
  signals.async_wait([&](const boost::system::error_code& error, int signal) {
    if (error)
      spdlog::error("connections can be taken no more: {}; stopping, so that the server is started again",
                    listener_error);
    else
      spdlog::info("{} received; stopping", signal == SIGTERM ? "SIGTERM" : "SIGINT");
  });
  io.run();
  // A second signal ends the process at once.
  signals.cancel();
  signals.clear();
  tell_service_manager("STOPPING=1");
  (*server)->Shutdown();
  spdlog::info("stopped; unfinished jobs go on at the next start");
  return listener_error.empty() ? 0 : 1;
}

}  // namespace fusion
