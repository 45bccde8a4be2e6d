// fusion-client: everything that people and scripts ask of fusion. Called as fusion-server it is that: most
// of the two is the same code, and a package has it once.
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <csignal>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "base/rpc/channel_credentials.h"
#include "client/cli/command_line.h"
#include "server/rpc/server_program.h"

int main(int argc, char** argv) {
  const std::string_view called = argc > 0 ? argv[0] : "";
  if (called.substr(called.rfind('/') + 1) == "fusion-server") return fusion::RunServerProgram(argc, argv);
  fusion::KeepOpenSslToTheEnd();
  std::signal(SIGCHLD, SIG_DFL);  // ignored, as some parents leave it, no child's end could be seen
  // The commands themselves say, in words, what gRPC would log about connections.
  setenv("GRPC_VERBOSITY", "NONE", 0);
  // Stdout is for data. The embedded server and worker log only what a person should know.
  const char* level = std::getenv("FUSION_LOG_LEVEL");
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("", std::make_shared<spdlog::sinks::stderr_sink_mt>()));
  spdlog::set_level(level == nullptr ? spdlog::level::warn : spdlog::level::from_str(level));
  return fusion::RunCommandLine(argc, argv);
}
