// A worker tells the server what it has and does, and does what the server asks for. It only ever calls, and
// needs no port.
#pragma once

#include <grpcpp/channel.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "worker/agent/blob_transfer.h"
#include "worker/agent/held_tasks.h"
#include "worker/agent/local_workplace.h"
#include "worker/agent/retry.h"
#include "worker/agent/workplace.h"

namespace fusion {

// Returns the name of this machine.
std::string HostName();

struct AgentOptions {
  std::string name;  // stable over restarts; "": the name of the host
  WorkplaceOptions workplace;
  // Opens a workplace instead of what this machine has; null: LocalWorkplace with the options above.
  std::function<absl::StatusOr<std::unique_ptr<Workplace>>(BlobTransfer*)> open_workplace;
  double wait_seconds = 10;  // how long the server may hold a call of an idle worker
  // Seconds that a worker that drains tries to reach a server that is away. What it holds is then left to the
  // leases, and done again elsewhere.
  double drain_seconds = 120;
  // Bytes of device code and of values of inputs that are kept in memory: all that one job can have of both.
  int64_t cache_bytes = int64_t{1} << 30;
  WorkerMetrics* metrics = nullptr;  // may be null; outlives the agent
};

class Agent {
 public:
  Agent(AgentOptions options, std::shared_ptr<grpc::Channel> channel);
  ~Agent();

  // Measures the devices, then works until Drain or Stop. While the server is away it goes on working and
  // tries again and again. OK after Drain or Stop; else why it could not start (LocalWorkplace::Open), or
  // Aborted: a newer process uses its name. Call once.
  absl::Status Run();

  // Takes no more tasks; Run returns when all results have been accepted, or the server has been away for
  // drain_seconds. Thread safe, as Stop.
  void Drain();
  // Ends running tasks, gives them back to the server if it answers within 2 s, and makes Run return.
  void Stop();

 private:
  struct Call;  // of Synchronize

  // Makes one call. next_contact: when to call again at the latest. Cancelled: there is news, and the call is
  // left to be answered.
  absl::Status Synchronize(std::chrono::duration<double>* next_contact);
  std::shared_ptr<Call> StartCall(v1::SynchronizeRequest request, double wait_seconds);
  // Takes the answers of the calls up to the newest that has been answered, in their order. Requires mutex_.
  std::vector<v1::SynchronizeResponse> TakeAnswers();
  // Cancels all calls and waits until they have ended.
  void EndCalls();
  void Handle(const v1::SynchronizeResponse& response);
  v1::SynchronizeRequest State();
  void GiveBack();
  void CountCall(const absl::Status& status);
  // Call it when something has changed that the server should hear now, though it may be holding a call.
  void Wake();

  const AgentOptions options_;
  const std::string name_;
  const std::string instance_;
  const std::unique_ptr<v1::WorkerService::Stub> stub_;
  BlobTransfer blobs_;
  HeldTasks held_;
  std::unique_ptr<Workplace> workplace_;  // set by Run
  bool answered_ = false;                 // whether the server answered the last call; used by Run alone

  std::stop_source stop_;
  std::mutex mutex_;
  std::condition_variable_any woken_;
  // Calls under way, or answered and not taken, in order; guarded by mutex_, as all below. The server ends a
  // call that it holds when the next one comes, so none is cancelled.
  std::deque<std::shared_ptr<Call>> calls_;
  int calls_under_way_ = 0;  // with those that were cancelled
  bool news_ = false;        // since the state was last sent
  bool draining_ = false;
  bool replaced_ = false;
};

}  // namespace fusion
