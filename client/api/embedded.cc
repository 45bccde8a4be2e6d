#include "client/api/embedded.h"

#include <atomic>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/temporary_directory.h"
#include "server/rpc/server.h"
#include "server/upkeep/data_directory.h"
#include "worker/agent/agent.h"
#include "worker/agent/local_machine.h"

namespace fusion {

// In the order of construction; destroyed the other way round.
struct EmbeddedBackend::Parts {
  std::unique_ptr<TemporaryDirectory> temporary;  // null: the data directory itself
  std::string data_directory;
  std::function<void(const std::string&)> notice;
  std::unique_ptr<Server> server;
  std::unique_ptr<Agent> agent;
  std::atomic<bool> stopping{false};
  std::thread agent_thread;

  ~Parts() {
    stopping = true;
    // The worker first: it gives its tasks back to the server.
    if (agent) agent->Stop();
    if (agent_thread.joinable()) agent_thread.join();
    agent.reset();
    if (server) server->Shutdown();
  }

  absl::Status UseTemporary() {
    FUSION_ASSIGN_OR_RETURN(std::unique_ptr<TemporaryDirectory> created, TemporaryDirectory::Create());
    temporary = std::move(created);
    data_directory = temporary->path();
    return absl::OkStatus();
  }
};

absl::StatusOr<std::unique_ptr<EmbeddedBackend>> EmbeddedBackend::Start(const EmbeddedOptions& options) {
  auto parts = std::make_unique<Parts>();
  auto notice = [&](const std::string& line) {
    if (options.notice) options.notice(line);
  };
  if (options.ephemeral) {
    FUSION_RETURN_IF_ERROR(parts->UseTemporary());
  } else {
    parts->data_directory = options.data_directory.empty() ? DefaultDataDirectory() : options.data_directory;
  }

  ServerOptions server_options;
  server_options.data_directory = parts->data_directory;
  server_options.resume_jobs = false;  // only what this process was asked for
  server_options.dispatcher.only_worker_is_here = true;
  server_options.runner.dump_directory = options.dump_directory;
  absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(server_options);
  if (absl::IsUnavailable(server.status()) && !options.ephemeral) {
    if (options.when_locked == EmbeddedOptions::WhenLocked::kFail) return server.status();
    notice(absl::StrCat(std::string(server.status().message()),
                        "; using a temporary one: builds are not reused and the job is not kept"));
    FUSION_RETURN_IF_ERROR(parts->UseTemporary());
    server_options.data_directory = parts->data_directory;
    server = Server::Start(server_options);
  }
  if (!server.ok()) return server.status();
  parts->server = *std::move(server);

  parts->notice = options.notice;
  return std::unique_ptr<EmbeddedBackend>(new EmbeddedBackend(std::move(parts)));
}

EmbeddedBackend::EmbeddedBackend(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

EmbeddedBackend::~EmbeddedBackend() = default;

void EmbeddedBackend::StartWorker(v1::Target target) {
  AgentOptions options;
  options.workplace.cuda = target != v1::HOST;
  options.workplace.host = target == v1::HOST || target == v1::TARGET_AUTO;
  // The user's own code on the user's own machine: confined where that is possible, and run anyhow.
  options.workplace.allow_unconfined_host_code = true;
  if (std::string why_not; options.workplace.host && parts_->notice && !HostCodeIsConfined(&why_not))
    parts_->notice(absl::StrCat("host code runs without a sandbox: ", why_not));
  parts_->agent = std::make_unique<Agent>(options, parts_->server->InProcessChannel());
  parts_->agent_thread = std::thread([parts = parts_.get()] {
    const absl::Status status = parts->agent->Run();
    if (!status.ok() && !parts->stopping && parts->notice)
      parts->notice(absl::StrCat("nothing can be built or timed: ", std::string(status.message())));
  });
}

std::shared_ptr<grpc::Channel> EmbeddedBackend::channel() const { return parts_->server->InProcessChannel(); }

const std::string& EmbeddedBackend::data_directory() const { return parts_->data_directory; }

bool EmbeddedBackend::temporary() const { return parts_->temporary != nullptr; }

std::string EmbeddedDataDirectory() { return DefaultDataDirectory(); }

absl::Status PrepareEmbeddedData(const std::string& directory) { return PrepareDataDirectory(directory); }

}  // namespace fusion
