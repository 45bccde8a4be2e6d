// Options of a tuner, and the server that it talks to.
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "client/config/configuration.h"
#include "client/tuner/fusion_tuner.h"
#include "client/tuner/grpc_link.h"
#include "client/tuner/handles.h"
#include "client/tuner/message.h"
#include "client/tuner/process.h"
#include "client/tuner/signals_blocked.h"
#include "server/rpc/server.h"
#include "server/tuner/parameter_space.h"
#include "server/tuner/search.h"
#include "server/upkeep/data_directory.h"

using namespace fusion::tuning;  // NOLINT: these functions are the C face of that namespace

namespace {

std::string NameOfExecutable() {
  char path[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof(path));
  if (size <= 0) return "program";
  const std::string whole(path, static_cast<size_t>(size));
  const std::string name = whole.substr(whole.rfind('/') + 1);
  // A file may be called anything.
  return fusion::IsTuningText(name) ? name : absl::CHexEscape(name).substr(0, fusion::kLongestTuningText);
}

// "AMD EPYC 9654, 16 processors".
std::string ProcessorClass() {
  std::string model = "unknown processor";
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos || !absl::StartsWith(line, "model name")) continue;
    model = std::string(absl::StripAsciiWhitespace(absl::string_view(line).substr(colon + 1)));
    break;
  }
  const long count = sysconf(_SC_NPROCESSORS_ONLN);
  return absl::StrCat(model, ", ", count, count == 1 ? " processor" : " processors");
}

std::string TextOr(const char* text, const std::string& otherwise) {
  return text == nullptr ? otherwise : text;
}

absl::Status CheckOptions(const fusion_tuner_options& options) {
  if (std::isnan(options.exploration_share) || options.exploration_share > 1)
    return absl::InvalidArgumentError(absl::StrCat("exploration_share is ", options.exploration_share,
                                                   "; it is a share of the running time, at most 1"));
  for (const auto& [option, text] : {std::pair<const char*, const char*>{"program", options.program},
                                     {"device_class", options.device_class}})
    if (text != nullptr && !fusion::IsTuningText(text))
      return absl::InvalidArgumentError(absl::StrCat(option, " must be 1 to ", fusion::kLongestTuningText,
                                                     " bytes of UTF-8 without control characters"));
  const std::vector<std::string>& strategies = fusion::TuningStrategyNames();
  const std::string strategy = TextOr(options.strategy, "");
  if (!strategy.empty() && std::find(strategies.begin(), strategies.end(), strategy) == strategies.end())
    return absl::InvalidArgumentError(
        absl::StrCat("there is no strategy ", strategy, "; there are ", absl::StrJoin(strategies, ", ")));
  return absl::OkStatus();
}

absl::Status UseEmbedded(const fusion_tuner_options& options, TunerSettings& settings,
                         std::shared_ptr<void>& server_in_process) {
  fusion::ServerOptions server_options;
  server_options.data_directory = TextOr(options.data_directory, "");
  if (server_options.data_directory.empty()) server_options.data_directory = fusion::DefaultDataDirectory();
  server_options.resume_jobs = false;
  absl::StatusOr<std::unique_ptr<fusion::Server>> server = fusion::Server::Start(server_options);
  if (!server.ok()) {
    if (!absl::IsUnavailable(server.status())) return server.status();
    return absl::UnavailableError(
        absl::StrCat(std::string(server.status().message()),
                     "; give this program another data_directory, or start a fusion-server for ",
                     "all programs of this machine and name it in FUSION_SERVER"));
  }
  const std::shared_ptr<fusion::Server> shared = *std::move(server);
  settings.dial = DialChannel(shared->InProcessChannel());
  server_in_process = shared;
  settings.server = "the server in this process";
  return absl::OkStatus();
}

absl::Status UseRemote(const std::string& address, TunerSettings& settings) {
  FUSION_ASSIGN_OR_RETURN(fusion::ClientCredentials credentials, fusion::CredentialsOf({.server = address}));
  credentials.reload = true;
  FUSION_ASSIGN_OR_RETURN(TuneDialer dial, DialServer(address, credentials));
  settings.dial = std::move(dial);
  settings.server = absl::StrCat("the server at ", address);
  return absl::OkStatus();
}

absl::StatusOr<Tuner*> Create(const fusion_tuner_options& options) {
  if (Process::Get().forked())
    return absl::FailedPreconditionError(
        "this process was forked from one that has a tuner, whose threads are missing here: create the tuner "
        "after exec");
  FUSION_RETURN_IF_ERROR(CheckOptions(options));
  TunerSettings settings;
  settings.program = TextOr(options.program, NameOfExecutable());
  settings.device_class = TextOr(options.device_class, ProcessorClass());
  settings.strategy = TextOr(options.strategy, "");
  settings.exploration_share = options.exploration_share;
  if (options.notice != nullptr)
    settings.notice = [notice = options.notice, data = options.notice_data](const std::string& line) {
      notice(line.c_str(), data);
    };
  else
    settings.notice = [](const std::string& line) {
      std::fprintf(stderr, "fusion tuner: %s\n", line.c_str());
    };
  FUSION_ASSIGN_OR_RETURN(std::string address, fusion::ServerAddress({.server = TextOr(options.server, "")}));
  std::shared_ptr<void> server_in_process;
  absl::Status status =
      address.empty() ? UseEmbedded(options, settings, server_in_process) : UseRemote(address, settings);
  if (!status.ok()) return status;
  return new Tuner(std::move(settings), std::move(server_in_process));
}

}  // namespace

void fusion_tuner_options_init(fusion_tuner_options* options) {
  if (options == nullptr) return;
  *options = fusion_tuner_options{};
  options->size = sizeof(*options);
  options->exploration_share = -1;
}

int fusion_tuner_create(const fusion_tuner_options* options, fusion_tuner** tuner) {
  if (tuner == nullptr) return Fail(absl::InvalidArgumentError("tuner is NULL"));
  *tuner = nullptr;
  fusion_tuner_options all;
  fusion_tuner_options_init(&all);
  if (options != nullptr) {
    // A program that was built with an older header gives less; what it cannot know stays as if it were
    // absent.
    if (options->size < offsetof(fusion_tuner_options, program) + sizeof(const char*))
      return Fail(absl::InvalidArgumentError(
          "size must be sizeof(fusion_tuner_options): call fusion_tuner_options_init first"));
    std::memcpy(&all, options, std::min(options->size, sizeof(all)));
  }
  const SignalsBlocked blocked;  // also in the threads of a server in this process, and of gRPC
  absl::StatusOr<Tuner*> created = Create(all);
  if (!created.ok()) return Fail(created.status());
  *tuner = HandleOf(*created);
  return FUSION_TUNER_OK;
}
