// The C++ client: one method per call of the services, to a server elsewhere or to one inside this process.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/monitor/trace_context.h"
#include "base/rpc/channel_credentials.h"
#include "base/rpc/chunks.h"
#include "client/api/embedded.h"
#include "fusion/v1/admin.grpc.pb.h"
#include "fusion/v1/optimizer.grpc.pb.h"
#include "fusion/v1/tuner.grpc.pb.h"

namespace fusion {

// Thread safe. Every call carries a W3C traceparent: that of $TRACEPARENT as it was when the client was made,
// else one of its own. Calls block. A failed call gives the server's status with its payloads
// (google.rpc.BadRequest for bad input); Unavailable when the server cannot be reached, Cancelled after
// Interrupt().
class Client {
 public:
  // Connects to the server at "host:port". Unavailable when nothing answers within 5 s, or the connection is
  // refused for 1 s. Unauthenticated: one of the two does not accept the other's certificate.
  // InvalidArgument: as from MakeChannelCredentials.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(const std::string& address,
                                                         const ClientCredentials& credentials = {});
  // Makes a client with a server in this process, which ends with the client, or with that of another process
  // on the same data (EmbeddedBackend).
  static absl::StatusOr<std::unique_ptr<Client>> Embedded(const EmbeddedOptions& options);
  // Makes a client over a channel that exists. `backend` may be null.
  Client(std::shared_ptr<grpc::Channel> channel, std::unique_ptr<EmbeddedBackend> backend);
  ~Client();

  bool embedded() const { return backend_ != nullptr; }
  // False when jobs end with this client, because its data directory is a temporary one.
  bool keeps_jobs() const { return !backend_ || !backend_->temporary(); }
  // EmbeddedBackend::StartWorker when embedded; a server elsewhere has workers of its own.
  void StartEmbeddedWorker(v1::Target target) {
    if (backend_) backend_->StartWorker(target);
  }

  // A server that was there may be away for so long, as while it is started again.
  static constexpr std::chrono::seconds kPatience{60};
  // Submits a job. The call is repeated on a lost connection, for up to `patience`; request_id (filled in
  // when empty) makes that safe. A server that has no room and says when to try again (google.rpc.RetryInfo)
  // is asked again then, kRefusals times at most; on_wait, if given, is called before each wait, with the
  // Unavailable or ResourceExhausted that is the reason. Waiting is part of the request's time limit:
  // DeadlineExceeded when that would end first; Unavailable and ResourceExhausted when nothing has changed in
  // the end. FailedPrecondition: the server is of an earlier version, which leaves out what it does not know
  // of the request; the job is cancelled, or named where the request_id was given.
  static constexpr int kRefusals = 20;
  absl::StatusOr<v1::Job> Submit(v1::SubmitRequest request,
                                 const std::function<void(const absl::Status& reason)>& on_wait = nullptr,
                                 std::chrono::seconds patience = kPatience);
  // Sends the values of an input, row by row in its type, for submissions that name the digest returned
  // (v1::InputValues.blob). Begins again on a lost connection and where the server has no room, as Submit
  // does. FailedPrecondition: the server is of an earlier version.
  static constexpr int64_t kMaximumInputBytes = kMaximumBlobBytes;        // of one input
  static constexpr int64_t kMaximumInputsBytes = kMaximumInputFileBytes;  // of those of a submission together
  absl::StatusOr<std::string> UploadInput(const std::string& bytes,
                                          std::chrono::seconds patience = kPatience);
  absl::StatusOr<v1::Job> GetJob(const std::string& name);
  // Returns one page. page_size 0: the server's choice.
  absl::StatusOr<v1::ListJobsResponse> ListJobs(int page_size, const std::string& page_token);
  absl::StatusOr<v1::Job> CancelJob(const std::string& name);
  // Calls `on_event` for every event after `after_sequence`, each once and in order, until the job has ended;
  // gives the ended job. A broken stream is taken up again after the last event seen for up to `patience`
  // without any contact.
  absl::StatusOr<v1::Job> WatchJob(const std::string& name, int64_t after_sequence,
                                   const std::function<void(const v1::JobEvent&)>& on_event,
                                   std::chrono::seconds patience = kPatience);
  absl::StatusOr<v1::CheckResponse> Check(const v1::CheckRequest& request);
  // FailedPrecondition: the server is of an earlier version, which leaves out what it does not know of the
  // request.
  absl::StatusOr<v1::ExplainResponse> Explain(const v1::ExplainRequest& request);
  // Downloads the exported folder of one candidate; its digest is checked.
  absl::StatusOr<v1::Artifact> DownloadArtifact(const std::string& job, int rank);
  absl::StatusOr<v1::ListFunctionsResponse> ListFunctions(const std::string& name);
  absl::StatusOr<v1::ReportModelResponse> ReportModel(const v1::ReportModelRequest& request);
  absl::StatusOr<v1::ListWorkersResponse> ListWorkers();
  absl::StatusOr<v1::Worker> DrainWorker(const std::string& name);
  // Returns the job as a timeline: Trace Event JSON.
  absl::StatusOr<std::string> TraceJob(const std::string& name);
  // Makes a copy of the server's database, on the server's machine.
  absl::StatusOr<v1::BackUpResponse> BackUp();
  // Forgets what predictions are made of. It is for admins.
  absl::StatusOr<v1::ResetModelResponse> ResetModel(const v1::ResetModelRequest& request);
  absl::StatusOr<v1::CreateTokenResponse> CreateToken(const v1::CreateTokenRequest& request);
  absl::StatusOr<v1::ListTokensResponse> ListTokens();
  absl::StatusOr<v1::Token> RevokeToken(const std::string& name);
  // Returns one page. page_size 0: the server's choice.
  absl::StatusOr<v1::ListAuditEntriesResponse> ListAuditEntries(int page_size, const std::string& page_token);

  // These calls are about online tuning. Lists come by the page; page_size 0: the server's choice.
  absl::StatusOr<v1::ListTuningsResponse> ListTunings(const std::string& program, int page_size,
                                                      const std::string& page_token);
  absl::StatusOr<v1::TuningDetails> GetTuning(const std::string& name);
  absl::StatusOr<v1::Tuning> ResetTuning(const std::string& name);
  absl::StatusOr<v1::ListTuningReportsResponse> ListTuningReports(const std::string& name, int page_size,
                                                                  const std::string& page_token);
  // Calls `on_change` with the tuning as it is, and after changes, until that returns false (then OK). A
  // broken stream is taken up again as by WatchJob; what it shows again is not told twice.
  absl::Status WatchTuning(const std::string& name, const std::function<bool(const v1::Tuning&)>& on_change,
                           std::chrono::seconds patience = kPatience);

  // Every call in flight and every later one ends with Cancelled. Callable from any thread.
  void Interrupt();

 private:
  // A context that Interrupt() can reach, for one call.
  class Call;
  // Makes one call of Submit; *unknown: what of the request the server does not know.
  absl::StatusOr<v1::Job> SubmitOnce(const v1::SubmitRequest& request, std::vector<std::string>* unknown);
  // The error of a job that the server has taken without a part of the request; it is cancelled, unless its
  // request id was known_before.
  absl::Status RefuseHalfAJob(const v1::Job& job, const std::vector<std::string>& unknown, bool known_before);
  template <class Stub, class Request, class Response>
  absl::StatusOr<Response> Unary(Stub& stub,
                                 grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                              Response*),
                                 const Request& request);
  // Calls `stream`, again after a pause while it ends with Unavailable and has called `heard` within
  // `patience`.
  absl::Status TakeUpAgain(std::chrono::seconds patience,
                           const std::function<absl::Status(const std::function<void()>& heard)>& stream);
  // Makes a call; again while it ends with Unavailable, if the server is that of another process, which may
  // end at any time: then a third one has the server, or this one.
  absl::Status AgainIfShared(const std::function<absl::Status()>& call);
  bool WaitUnlessInterrupted(std::chrono::milliseconds time);

  std::unique_ptr<EmbeddedBackend> backend_;  // outlives the channel's calls
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::OptimizerService::Stub> optimizer_;
  std::unique_ptr<v1::FleetService::Stub> fleet_;
  std::unique_ptr<v1::AdminService::Stub> admin_;
  std::unique_ptr<v1::TunerService::Stub> tuner_;
  const TraceContext trace_ = TraceFromEnvironment();

  std::mutex mutex_;
  std::condition_variable interruption_;
  bool interrupted_ = false;              // guarded by mutex_
  std::set<grpc::ClientContext*> calls_;  // guarded by mutex_; in flight
};

// Arguments for a channel to a server of ours: message sizes, keepalive. Also accepts long error details.
// longest_pause: between tries to connect.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address,
                                           const std::shared_ptr<grpc::ChannelCredentials>& credentials,
                                           std::chrono::milliseconds longest_pause = std::chrono::seconds(2));

}  // namespace fusion
