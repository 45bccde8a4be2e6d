#include "client/api/embedded.h"

#include <grpcpp/security/credentials.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file_lock.h"
#include "base/status_macros.h"
#include "base/temporary_directory.h"
#include "client/api/client.h"
#include "server/rpc/server.h"
#include "server/upkeep/data_directory.h"
#include "worker/agent/agent.h"
#include "worker/agent/local_machine.h"

namespace fusion {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Between looks whether another process has let go of what is shared.
constexpr milliseconds kBetweenLooks{100};
// A server that has the store has its socket after so long, or it shares it with nobody.
constexpr std::chrono::seconds kSocketPatience{5};
constexpr milliseconds kReconnectPause{200};

// Returns false when the thread is to stop.
bool Pause(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  stopped.wait_for(lock, stop, kBetweenLooks, [] { return false; });
  return !stop.stop_requested();
}

}  // namespace

// In the order of construction; destroyed the other way round.
struct EmbeddedBackend::Parts {
  std::unique_ptr<TemporaryDirectory> temporary;  // null: the data directory itself
  ServerOptions server_options;
  std::function<void(const std::string&)> notice;
  std::shared_ptr<grpc::Channel> shared_channel;  // to the server of another process; null: it is in this one
  std::unique_ptr<Server> server;                 // written by `successor`, if that runs
  std::jthread successor;
  std::jthread worker;

  // The worker first: it gives its tasks back to the server.
  ~Parts() {
    for (std::jthread* thread : {&worker, &successor}) {
      thread->request_stop();
      if (thread->joinable()) thread->join();
    }
    shared_channel.reset();
    if (server) server->Shutdown();
  }

  void Tell(const std::string& line) const {
    if (notice) notice(line);
  }
  std::string FileBesideTheStore(const char* name) const {
    return absl::StrCat(server_options.data_directory, "/", name);
  }

  absl::Status StartServer() {
    FUSION_ASSIGN_OR_RETURN(server, Server::Start(server_options));
    return absl::OkStatus();
  }
  // Has the server here, or a channel to it.
  absl::Status FindServer();
  // Starts the server when no other process has it any more.
  void Succeed(const std::stop_token& stop);
  void Work(const std::stop_token& stop);
};

absl::Status EmbeddedBackend::Parts::FindServer() {
  const auto end = steady_clock::now() + kSocketPatience;
  for (;;) {
    const absl::Status started = StartServer();
    if (!absl::IsUnavailable(started) || server_options.socket.empty()) return started;
    // Another process may be about to have the socket, or to end.
    if (access(server_options.socket.c_str(), F_OK) == 0) {
      shared_channel = MakeChannel(absl::StrCat("unix:", server_options.socket),
                                   grpc::InsecureChannelCredentials(), kReconnectPause);
      if (shared_channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(1)))
        return absl::OkStatus();
      shared_channel.reset();
    }
    if (steady_clock::now() > end) return started;
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

void EmbeddedBackend::Parts::Succeed(const std::stop_token& stop) {
  while (Pause(stop)) {
    if (DataDirectoryInUse(server_options.data_directory)) continue;
    const absl::Status started = StartServer();
    if (started.ok()) return;
    if (absl::IsUnavailable(started)) continue;  // another was faster
    Tell(absl::StrCat("the process that had the server has ended, and it cannot be started here: ",
                      started.message()));
    return;
  }
}

void EmbeddedBackend::Parts::Work(const std::stop_token& stop) {
  std::unique_ptr<FileLock> lock;
  for (;;) {
    absl::StatusOr<std::unique_ptr<FileLock>> acquired = FileLock::Acquire(FileBesideTheStore("worker.lock"));
    if (acquired.ok()) {
      lock = *std::move(acquired);
      break;
    }
    if (!absl::IsUnavailable(acquired.status())) {
      Tell(absl::StrCat("nothing can be built or timed: ", acquired.status().message()));
      return;
    }
    if (!Pause(stop)) return;
  }
  AgentOptions options;
  // The user's own code on the user's own machine: confined where that is possible, and run anyhow.
  options.workplace.allow_unconfined_host_code = true;
  Agent agent(options, shared_channel ? shared_channel : server->InProcessChannel());
  const std::stop_callback stopping(stop, [&agent] { agent.Stop(); });
  const absl::Status status = agent.Run();
  if (!status.ok() && !stop.stop_requested())
    Tell(absl::StrCat("nothing can be built or timed: ", status.message()));
}

absl::StatusOr<std::unique_ptr<EmbeddedBackend>> EmbeddedBackend::Start(const EmbeddedOptions& options) {
  auto parts = std::make_unique<Parts>();
  parts->notice = options.notice;
  ServerOptions& server = parts->server_options;
  if (options.ephemeral) {
    FUSION_ASSIGN_OR_RETURN(parts->temporary, TemporaryDirectory::Create());
    server.data_directory = parts->temporary->path();
  } else {
    server.data_directory = options.data_directory.empty() ? DefaultDataDirectory() : options.data_directory;
    FUSION_RETURN_IF_ERROR(PrepareDataDirectory(server.data_directory));
    server.socket = parts->FileBesideTheStore("server.socket");
    if (server.socket.size() >= sizeof(sockaddr_un::sun_path))
      server.socket.clear();  // nothing is shared then
  }
  server.resume_jobs = false;  // only what this process and those that share it were asked for
  server.dispatcher.only_worker_is_here = true;
  server.runner.dump_directory = options.dump_directory;
  FUSION_RETURN_IF_ERROR(parts->FindServer());
  if (parts->shared_channel) {
    if (!options.dump_directory.empty())
      return absl::FailedPreconditionError(
          absl::StrCat("--dump-dir: another fusion-client has the embedded server of ", server.data_directory,
                       ", and it dumps nothing; wait until that ends"));
    parts->successor = std::jthread([parts = parts.get()](std::stop_token stop) { parts->Succeed(stop); });
  }
  return std::unique_ptr<EmbeddedBackend>(new EmbeddedBackend(std::move(parts)));
}

EmbeddedBackend::EmbeddedBackend(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

EmbeddedBackend::~EmbeddedBackend() = default;

void EmbeddedBackend::StartWorker(v1::Target target) {
  if (std::string why_not; target != v1::CUDA && !HostCodeIsConfined(&why_not))
    parts_->Tell(absl::StrCat("host code runs without a sandbox: ", why_not));
  parts_->worker = std::jthread([parts = parts_.get()](std::stop_token stop) { parts->Work(stop); });
}

std::shared_ptr<grpc::Channel> EmbeddedBackend::channel() const {
  return parts_->shared_channel ? parts_->shared_channel : parts_->server->InProcessChannel();
}

const std::string& EmbeddedBackend::data_directory() const { return parts_->server_options.data_directory; }

bool EmbeddedBackend::temporary() const { return parts_->temporary != nullptr; }

bool EmbeddedBackend::shared() const { return parts_->shared_channel != nullptr; }

std::string EmbeddedDataDirectory() { return DefaultDataDirectory(); }

absl::Status PrepareEmbeddedData(const std::string& directory) { return PrepareDataDirectory(directory); }

}  // namespace fusion
