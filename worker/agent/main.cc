// fusion-worker: builds and times for a server.
#include <grpcpp/security/credentials.h>
#include <signal.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/monitor/grpc_log.h"
#include "base/monitor/log.h"
#include "base/monitor/monitor.h"
#include "base/rpc/channel_credentials.h"
#include "worker/agent/agent.h"
#include "worker/agent/server_channel.h"
#include "worker/agent/simulated_workplace.h"
#include "worker/agent/worker_metrics.h"

namespace {

constexpr int kExitFailed = 1, kExitUsage = 2, kExitNotAuthorised = 4;

}  // namespace

// It is long because each option takes a line to name it and a line to use it.
int main(int argc, char** argv) {
  fusion::KeepOpenSslToTheEnd();
  signal(SIGCHLD, SIG_DFL);  // ignored, as some parents leave it, no child's end could be seen
  CLI::App app{"Builds and times kernels for a fusion server. Needs no open port."};
  app.set_version_flag("--version", FUSION_VERSION);
  std::string server, target = "all", log_level = "info", log_format = "text", metrics_address;
  fusion::WorkerMetrics metrics;
  std::string token_file;
  fusion::AgentOptions options;
  fusion::ClientCredentials credentials;
  credentials.reload = true;
  app.add_option("--server", server, "address of the server, host:port")->required();
  app.add_option(
      "--name", options.name,
      "stable name of this worker (default: the host's name); a server with TLS takes the name of the "
      "certificate or token, or one that begins with it and a slash");
  app.add_option("--tls-ca", credentials.authorities,
                 "PEM file of the authority that signed the server's certificate");
  app.add_option("--tls-cert", credentials.certificate,
                 "PEM file of this worker's certificate; read again when it changes");
  app.add_option("--tls-key", credentials.key, "PEM file of its private key");
  app.add_option("--token-file", token_file,
                 "file with a token, instead of a certificate (default: $FUSION_TOKEN)");
  app.add_option("--target", target, "devices to offer")->check(CLI::IsMember({"cuda", "host", "all"}));
  app.add_option("--build-slots", options.workplace.build_slots,
                 "builds at a time (default: one for each processor that this process may use)")
      ->check(CLI::Range(1, 1024));
  options.workplace.spare_runners = 1;
  app.add_option("--spare-runners", options.workplace.spare_runners,
                 "runners of each device that are started before they are needed, to replace one that a "
                 "candidate crashed (default: 1)")
      ->check(CLI::Range(0, 8));
  bool builds_only = false;
  app.add_flag("--builds-only", builds_only, "offer compilers and no devices: needs no GPU");
  fusion::SimulationOptions simulation{.devices = 0};
  CLI::Option* simulate =
      app.add_option("--simulate", simulation.devices,
                     "offer so many simulated GPUs instead of what is here, to try out a farm: nothing is "
                     "computed or verified")
          ->check(CLI::Range(1, 1024));
  const auto add_share = [&](const char* name, double* share, const char* help) {
    app.add_option(name, *share, help)->check(CLI::Range(0.0, 1.0))->needs(simulate);
  };
  add_share("--simulate-faults", &simulation.faults, "share of simulated programs that fault");
  add_share("--simulate-wrong", &simulation.wrong, "share of simulated programs that give wrong results");
  add_share("--simulate-cheats", &simulation.cheats,
            "share of simulated programs that are faster than their memory traffic allows");
  add_share("--simulate-hangs", &simulation.hangs, "share of simulated timings that never end");
  add_share("--simulate-failures", &simulation.failures,
            "share of simulated timings at which the worker fails");
  add_share("--simulate-sick", &simulation.sick_devices,
            "share of simulated timings after which their device is taken out for a while");
  app.add_option("--simulate-out", simulation.out,
                 "so many of the simulated GPUs do not work when the worker starts, and come back after a "
                 "while")
      ->check(CLI::Range(0, 1024))
      ->needs(simulate);
  app.add_option("--simulate-sick-seconds", simulation.sick_seconds,
                 "how long a simulated GPU is taken out (default: 1)")
      ->check(CLI::Range(0.0, 86400.0))
      ->needs(simulate);
  app.add_option("--simulate-seconds", simulation.time_seconds,
                 "time that a simulated timing takes (default: 0.1)")
      ->check(CLI::Range(0.0, 3600.0))
      ->needs(simulate);
  app.add_flag("--allow-unconfined-host-code", options.workplace.allow_unconfined_host_code,
               "offer the host as a device even where native code of candidates cannot be confined");
  app.add_option("--log-level", log_level, "debug, info, warn or error")
      ->check(CLI::IsMember({"debug", "info", "warn", "error"}));
  app.add_option("--log-format", log_format, "text, or json: one object a line, with ids of tasks")
      ->check(CLI::IsMember({"text", "json"}));
  app.add_option(
      "--metrics-listen", metrics_address,
      "HOST:PORT of /metrics, /healthz and /readyz over HTTP, such as 127.0.0.1:9465 (default: none)");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  options.workplace.cuda = target != "host";
  options.workplace.host = target != "cuda";
  options.workplace.devices = !builds_only;
  if (simulation.devices > 0) {
    simulation.host = options.name.empty() ? fusion::HostName() : options.name;
    if (options.workplace.build_slots > 0) simulation.build_slots = options.workplace.build_slots;
    options.open_workplace = [simulation](fusion::BlobTransfer* blobs) {
      return std::make_unique<fusion::SimulatedWorkplace>(simulation, blobs);
    };
  }
  fusion::SetUpLogging(log_format == "json" ? fusion::LogFormat::kJson : fusion::LogFormat::kText, log_level,
                       "fusion-worker",
                       {{"worker", options.name.empty() ? fusion::HostName() : options.name}});
  fusion::RouteGrpcLog();
  options.metrics = &metrics;
  std::unique_ptr<fusion::HttpServer> monitor;
  if (!metrics_address.empty()) {
    fusion::MonitorOptions pages;
    pages.http.address = metrics_address;
    // A worker whose server is away is healthy: it waits, and a new process could do no more.
    pages.ready = [&] {
      return metrics.connected->value() > 0 ? absl::OkStatus()
                                            : absl::UnavailableError("the server does not answer");
    };
    auto started = fusion::StartMonitor(pages, &metrics.registry);
    if (!started.ok()) {
      spdlog::error("{}", std::string(started.status().message()));
      return absl::IsInvalidArgument(started.status()) ? kExitUsage : kExitFailed;
    }
    monitor = *std::move(started);
    spdlog::info("metrics at http://{}/metrics", monitor->address());
  }

  if (const char* token = std::getenv("FUSION_TOKEN"); token != nullptr && credentials.certificate.empty())
    credentials.token = token;
  if (!token_file.empty()) {
    absl::StatusOr<std::string> token = fusion::ReadTokenFile(token_file);
    if (!token.ok()) {
      spdlog::error("{}", std::string(token.status().message()));
      return kExitUsage;
    }
    credentials.token = *token;
  }
  if (const std::string why = fusion::WhyTokenIsNotShown(server, credentials); !why.empty()) {
    if (!token_file.empty()) {
      spdlog::error("--token-file: {}", why);
      return kExitUsage;
    }
    spdlog::warn("{}", why);
  }
  const auto shown = fusion::MakeChannelCredentials(server, credentials);
  if (!shown.ok()) {
    spdlog::error("{}", std::string(shown.status().message()));
    return absl::IsUnauthenticated(shown.status()) ? kExitNotAuthorised : kExitUsage;
  }
  fusion::Agent agent(options, fusion::MakeServerChannel(server, *shown));
  boost::asio::io_context signals;
  boost::asio::signal_set set(signals, SIGINT, SIGTERM);
  int received = 0;
  std::function<void()> wait = [&] {
    set.async_wait([&](const boost::system::error_code& error, int) {
      if (error) return;
      if (++received == 1) {
        spdlog::info("finishing what runs; a second signal ends it");
        agent.Drain();
      } else {
        agent.Stop();
      }
      wait();
    });
  };
  wait();
  std::thread signal_thread([&] { signals.run(); });
  const absl::Status status = agent.Run();
  signals.stop();
  signal_thread.join();
  if (status.ok()) return 0;
  spdlog::error("{}", std::string(status.message()));
  return absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status) ? kExitNotAuthorised
                                                                             : kExitFailed;
}
