// fusion-worker: builds and times for a server.
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <signal.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

#include "server/identity/channel_credentials.h"
#include "worker/agent/agent.h"

namespace {

constexpr int kExitFailed = 1, kExitUsage = 2, kExitNotAuthorised = 4;

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Builds and times kernels for a fusion server. Needs no open port."};
  std::string server, target = "all", log_level = "info";
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
                 "builds at a time (default: one for each core)")
      ->check(CLI::Range(1, 1024));
  app.add_option("--log-level", log_level, "debug, info, warn or error")
      ->check(CLI::IsMember({"debug", "info", "warn", "error"}));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  options.workplace.cuda = target != "host";
  options.workplace.host = target != "cuda";
  spdlog::set_default_logger(spdlog::stderr_color_mt("fusion-worker"));
  spdlog::set_level(spdlog::level::from_str(log_level));

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
  const auto shown = fusion::MakeChannelCredentials(server, credentials);
  if (!shown.ok()) {
    spdlog::error("{}", std::string(shown.status().message()));
    return absl::IsUnauthenticated(shown.status()) ? kExitNotAuthorised : kExitUsage;
  }
  fusion::Agent agent(options, grpc::CreateChannel(server, *shown));
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
