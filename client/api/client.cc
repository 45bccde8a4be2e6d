#include "client/api/client.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <algorithm>
#include <future>
#include <random>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/random_id.h"
#include "base/rpc/chunks.h"
#include "base/rpc/status_conversion.h"
#include "base/status_macros.h"
#include "server/rpc/submission_fields.h"

namespace fusion {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

// A host that says nothing gets the longer time; one that refuses the connection may be starting its server.
constexpr seconds kConnectTime{5};
constexpr seconds kRefusedTime{1};
// However long a server says.
constexpr double kLongestRetryDelaySeconds = 60;

// Between calls of a server that does not answer: 0.1 s, then twice as long each time, 2 s at most.
class Pauses {
 public:
  milliseconds Next() { return std::exchange(next_, std::min(next_ * 2, milliseconds(2000))); }

 private:
  milliseconds next_{100};
};

// Seconds until the server that refused a call should be asked again; 0: it does not say. A little longer
// than it says, and not the same for all: clients that were refused together should not come back together.
double RetryDelay(const absl::Status& refusal) {
  const double seconds = std::min(RetrySeconds(refusal), kLongestRetryDelaySeconds);
  if (!(seconds > 0)) return 0;
  std::random_device device;
  return seconds * (1 + 0.2 * device() / std::random_device::max());
}

// The end of a stream that the client did not end: a server that goes down may cancel its streams.
absl::Status StreamEnd(const grpc::Status& end) {
  absl::Status status = FromGrpcStatus(end);
  return absl::IsCancelled(status)
             ? absl::UnavailableError(absl::StrCat("the server ended the stream: ", status.message()))
             : status;
}

// Finds out what stands between a channel that does not work and the server, by a call that needs no role:
// the empty message is a HealthCheckRequest for the whole server.
grpc::Status Probe(const std::shared_ptr<grpc::Channel>& channel) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kConnectTime);
  grpc::Slice empty;
  grpc::ByteBuffer request(&empty, 1), response;
  std::promise<grpc::Status> ended;
  stub.UnaryCall(&context, "/grpc.health.v1.Health/Check", grpc::StubOptions(), &request, &response,
                 [&](grpc::Status status) { ended.set_value(std::move(status)); });
  return ended.get_future().get();
}

// Returns whether a connection was made and ended, by the words of gRPC, which has no codes for it.
bool IsRefusedHandshake(const grpc::Status& status) {
  for (const char* words :
       {"andshake", "Socket closed", "Connection reset", "Broken pipe", "Peer name", "Endpoint read failed"})
    if (absl::StrContains(status.error_message(), words)) return true;
  return false;
}

// In TLS 1.3 a server that refuses a certificate says so after the client has begun to talk.
absl::Status HandshakeFailed(const std::string& address, const grpc::Status& status) {
  const std::string& message = status.error_message();
  if (absl::StrContains(message, "certificate") || absl::StrContains(message, "Peer name") ||
      absl::StrContains(message, "andshake"))
    return absl::UnauthenticatedError(
        absl::StrCat("the server at ", address,
                     " and this client do not accept each other's certificates: --tls-ca must be the "
                     "authority that signed the server's, which must name its host and be in its time (",
                     message, ")"));
  return absl::UnauthenticatedError(absl::StrCat("the server at ", address,
                                                 " ended the connection after the handshake: it may not "
                                                 "accept the certificate of --tls-cert, which must be "
                                                 "signed by an authority that it trusts and be in its time (",
                                                 message, ")"));
}

// Returns what the server said with its answer under a header; "": nothing.
absl::string_view Answered(const grpc::ClientContext& context, const char* header) {
  const auto& answer = context.GetServerInitialMetadata();
  const auto found = answer.find(header);
  return found == answer.end() ? "" : absl::string_view(found->second.data(), found->second.size());
}

std::string NotKnown(const std::vector<std::string>& fields) {
  return absl::StrCat("the server is of an earlier version, which does not know `",
                      absl::StrJoin(fields, "`, `"), "`");
}

}  // namespace

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address,
                                           const std::shared_ptr<grpc::ChannelCredentials>& credentials,
                                           milliseconds longest_pause) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt(GRPC_ARG_MAX_METADATA_SIZE, 2 * static_cast<int>(kMaximumErrorBytes));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10000);
  const int pause = static_cast<int>(longest_pause.count());
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, std::min(pause, 1000));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, pause);
  FollowServerName(&arguments);
  return grpc::CreateCustomChannel(address, credentials, arguments);
}

class Client::Call {
 public:
  explicit Call(Client* client) : client_(client) {
    context_.AddMetadata(kErrorBytesHeader, absl::StrCat(kMaximumErrorBytes));
    context_.AddMetadata(kTraceParentHeader, client_->trace_.ToString());
    std::lock_guard lock(client_->mutex_);
    client_->calls_.insert(&context_);
    if (client_->interrupted_) context_.TryCancel();
  }
  ~Call() {
    std::lock_guard lock(client_->mutex_);
    client_->calls_.erase(&context_);
  }
  grpc::ClientContext* context() { return &context_; }

 private:
  Client* client_;
  grpc::ClientContext context_;
};

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(const std::string& address,
                                                        const ClientCredentials& credentials) {
  FUSION_ASSIGN_OR_RETURN(std::shared_ptr<grpc::ChannelCredentials> channel_credentials,
                          MakeChannelCredentials(address, credentials));
  std::shared_ptr<grpc::Channel> channel = MakeChannel(address, channel_credentials);
  const bool tls = !credentials.authorities.empty();
  const auto start = std::chrono::system_clock::now();
  for (grpc_connectivity_state state = channel->GetState(true); state != GRPC_CHANNEL_READY;) {
    const auto patience = state == GRPC_CHANNEL_TRANSIENT_FAILURE ? kRefusedTime : kConnectTime;
    if (!channel->WaitForStateChange(state, start + patience)) {
      const grpc::Status status = tls ? Probe(channel) : grpc::Status::OK;
      if (IsRefusedHandshake(status)) return HandshakeFailed(address, status);
      return absl::UnavailableError(absl::StrCat(
          "no server answers at ", address, "; is the address right? There, fusion-server --listen ", address,
          " starts one", tls ? "" : " (a server with TLS takes --tls-ca here)"));
    }
    state = channel->GetState(true);
  }
  if (tls) {
    const grpc::Status status = Probe(channel);
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE) return HandshakeFailed(address, status);
  }
  return std::make_unique<Client>(std::move(channel), nullptr);
}

absl::StatusOr<std::unique_ptr<Client>> Client::Embedded(const EmbeddedOptions& options) {
  FUSION_ASSIGN_OR_RETURN(std::unique_ptr<EmbeddedBackend> backend, EmbeddedBackend::Start(options));
  std::shared_ptr<grpc::Channel> channel = backend->channel();
  return std::make_unique<Client>(std::move(channel), std::move(backend));
}

Client::Client(std::shared_ptr<grpc::Channel> channel, std::unique_ptr<EmbeddedBackend> backend)
    : backend_(std::move(backend)),
      channel_(std::move(channel)),
      optimizer_(v1::OptimizerService::NewStub(channel_)),
      fleet_(v1::FleetService::NewStub(channel_)),
      admin_(v1::AdminService::NewStub(channel_)),
      tuner_(v1::TunerService::NewStub(channel_)) {}

Client::~Client() = default;

void Client::Interrupt() {
  std::lock_guard lock(mutex_);
  interrupted_ = true;
  for (grpc::ClientContext* context : calls_) context->TryCancel();
  interruption_.notify_all();
}

absl::Status Client::TakeUpAgain(
    seconds patience, const std::function<absl::Status(const std::function<void()>& heard)>& stream) {
  steady_clock::time_point last_contact = steady_clock::now();
  Pauses pauses;
  for (;;) {
    const absl::Status status = stream([&] {
      last_contact = steady_clock::now();
      pauses = {};
    });
    if (!absl::IsUnavailable(status) || steady_clock::now() - last_contact > patience) return status;
    if (!WaitUnlessInterrupted(pauses.Next())) return absl::CancelledError("interrupted");
  }
}

absl::Status Client::AgainIfShared(const std::function<absl::Status()>& call) {
  if (backend_ == nullptr || !backend_->shared()) return call();
  return TakeUpAgain(kPatience, [&](const auto&) { return call(); });
}

bool Client::WaitUnlessInterrupted(milliseconds time) {
  std::unique_lock lock(mutex_);
  return !interruption_.wait_for(lock, time, [this] { return interrupted_; });
}

template <class Stub, class Request, class Response>
absl::StatusOr<Response> Client::Unary(Stub& stub,
                                       grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                                    Response*),
                                       const Request& request) {
  Response response;
  const auto once = [&] {
    Call call(this);
    return FromGrpcStatus((stub.*method)(call.context(), request, &response));
  };
  FUSION_RETURN_IF_ERROR(AgainIfShared(once));
  return response;
}

absl::StatusOr<v1::Job> Client::SubmitOnce(const v1::SubmitRequest& request,
                                           std::vector<std::string>* unknown) {
  Call call(this);
  v1::Job job;
  const grpc::Status ended = optimizer_->Submit(call.context(), request, &job);
  if (!ended.ok()) return FromGrpcStatus(ended);
  *unknown = UnknownSubmissionFields(request, Answered(*call.context(), kSubmissionFieldsHeader));
  return job;
}

absl::Status Client::RefuseHalfAJob(const v1::Job& job, const std::vector<std::string>& unknown,
                                    bool known_before) {
  const std::string what =
      absl::StrCat(NotKnown(unknown), " of a submission and leaves it out; ", job.name());
  // Whoever named the request may have got a job that was there.
  if (known_before)
    return absl::FailedPreconditionError(
        absl::StrCat(what, " has it not: `fusion-client jobs cancel ", job.name(), "` ends it"));
  const absl::Status cancelled = CancelJob(job.name()).status();
  return absl::FailedPreconditionError(
      absl::StrCat(what, cancelled.ok() ? " was cancelled"
                                        : absl::StrCat(" could not be cancelled: ", cancelled.message())));
}

absl::StatusOr<v1::Job> Client::Submit(v1::SubmitRequest request,
                                       const std::function<void(const absl::Status&)>& on_wait,
                                       seconds patience) {
  const bool known_before = !request.request_id().empty();
  if (!known_before) request.set_request_id(RandomHex(4));
  const double limit = request.time_limit_seconds();
  const auto start = steady_clock::now();
  steady_clock::time_point last_contact = start;
  Pauses pauses;
  for (int refusals = 0;;) {
    std::vector<std::string> unknown;
    absl::StatusOr<v1::Job> job = SubmitOnce(request, &unknown);
    if (job.ok() && !unknown.empty()) return RefuseHalfAJob(*job, unknown, known_before);
    std::chrono::duration<double> delay{0};
    if (absl::IsUnavailable(job.status()) && steady_clock::now() - last_contact < patience) {
      delay = pauses.Next();
    } else if (absl::IsResourceExhausted(job.status()) && refusals++ < kRefusals) {
      delay = std::chrono::duration<double>(RetryDelay(job.status()));
      last_contact = steady_clock::now();
      pauses = {};
    }
    if (delay.count() == 0) return job;
    const std::chrono::duration<double> spent = steady_clock::now() - start;
    if (limit > 0 && (spent + delay).count() >= limit)
      return absl::DeadlineExceededError(absl::StrCat(
          "the time limit of ", limit, " s ends before the server ",
          absl::IsUnavailable(job.status()) ? "answers: " : "has room: ", job.status().message()));
    if (on_wait) on_wait(job.status());
    if (!WaitUnlessInterrupted(std::chrono::ceil<milliseconds>(delay)))
      return absl::CancelledError("interrupted");
    // The server counts from the submission on.
    if (limit > 0) request.set_time_limit_seconds(limit - (spent + delay).count());
  }
}

absl::StatusOr<std::string> Client::UploadInput(const std::string& bytes, seconds patience) {
  const std::string digest = BlobDigest(bytes);
  for (int refusals = 0;; ++refusals) {
    const absl::Status status = TakeUpAgain(patience, [&](const std::function<void()>& heard) {
      Call call(this);
      v1::WriteBlobResponse response;
      auto writer = optimizer_->UploadInput(call.context(), &response);
      ChunkSplitter splitter(digest, bytes);
      v1::Chunk chunk;
      while (splitter.Next(&chunk) && writer->Write(chunk)) heard();
      writer->WritesDone();
      return FromGrpcStatus(writer->Finish());
    });
    if (absl::IsUnimplemented(status))
      return absl::FailedPreconditionError(
          "the server is of an earlier version, which takes no values of inputs from files");
    if (status.ok()) return digest;
    const auto delay = std::chrono::duration<double>(RetryDelay(status));
    if (!absl::IsResourceExhausted(status) || delay.count() == 0 || refusals == kRefusals) return status;
    if (!WaitUnlessInterrupted(std::chrono::ceil<milliseconds>(delay)))
      return absl::CancelledError("interrupted");
  }
}

absl::StatusOr<v1::Job> Client::GetJob(const std::string& name) {
  v1::GetJobRequest request;
  request.set_name(name);
  return Unary(*optimizer_, &v1::OptimizerService::Stub::GetJob, request);
}

absl::StatusOr<v1::ListJobsResponse> Client::ListJobs(int page_size, const std::string& page_token) {
  v1::ListJobsRequest request;
  request.set_page_size(page_size);
  request.set_page_token(page_token);
  return Unary(*optimizer_, &v1::OptimizerService::Stub::ListJobs, request);
}

absl::StatusOr<v1::Job> Client::CancelJob(const std::string& name) {
  v1::CancelJobRequest request;
  request.set_name(name);
  return Unary(*optimizer_, &v1::OptimizerService::Stub::CancelJob, request);
}

absl::StatusOr<v1::Job> Client::WatchJob(const std::string& name, int64_t after_sequence,
                                         const std::function<void(const v1::JobEvent&)>& on_event,
                                         seconds patience) {
  v1::WatchJobRequest request;
  request.set_name(name);
  request.set_after_sequence(after_sequence);
  v1::Job ended;
  const absl::Status status = TakeUpAgain(patience, [&](const std::function<void()>& heard) {
    Call call(this);
    std::unique_ptr<grpc::ClientReader<v1::JobEvent>> reader = optimizer_->WatchJob(call.context(), request);
    v1::JobEvent event;
    while (reader->Read(&event)) {
      heard();
      if (event.sequence() <= request.after_sequence()) continue;
      request.set_after_sequence(event.sequence());
      on_event(event);
      if (!event.has_finished()) continue;
      ended = event.finished();
      return absl::OkStatus();
    }
    FUSION_RETURN_IF_ERROR(StreamEnd(reader->Finish()));
    // All events were seen before, the last one too.
    FUSION_ASSIGN_OR_RETURN(v1::Job job, GetJob(name));
    if (job.state() == v1::QUEUED || job.state() == v1::RUNNING)
      return absl::UnavailableError("the server ended the stream before the job ended");
    ended = std::move(job);
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return ended;
}

absl::StatusOr<v1::CheckResponse> Client::Check(const v1::CheckRequest& request) {
  return Unary(*optimizer_, &v1::OptimizerService::Stub::Check, request);
}

absl::StatusOr<v1::ExplainResponse> Client::Explain(const v1::ExplainRequest& request) {
  v1::ExplainResponse explanation;
  std::vector<std::string> unknown;
  FUSION_RETURN_IF_ERROR(AgainIfShared([&] {
    Call call(this);
    const grpc::Status ended = optimizer_->Explain(call.context(), request, &explanation);
    unknown = UnknownExplanationFields(request, Answered(*call.context(), kExplanationFieldsHeader));
    return FromGrpcStatus(ended);
  }));
  if (unknown.empty()) return explanation;
  return absl::FailedPreconditionError(
      absl::StrCat(NotKnown(unknown), " of what is to be explained and leaves it out"));
}

absl::StatusOr<v1::Artifact> Client::DownloadArtifact(const std::string& job, int rank) {
  v1::DownloadArtifactRequest request;
  request.set_job(job);
  request.set_rank(rank);
  std::string bytes;
  FUSION_RETURN_IF_ERROR(AgainIfShared([&]() -> absl::Status {
    Call call(this);
    std::unique_ptr<grpc::ClientReader<v1::Chunk>> reader =
        optimizer_->DownloadArtifact(call.context(), request);
    ChunkAssembler assembler;
    v1::Chunk chunk;
    absl::Status received;
    while (received.ok() && reader->Read(&chunk)) received = assembler.Add(chunk);
    if (!received.ok()) call.context()->TryCancel();
    absl::Status status = FromGrpcStatus(reader->Finish());
    if (!received.ok()) return received;
    FUSION_RETURN_IF_ERROR(status);
    FUSION_ASSIGN_OR_RETURN(bytes, std::move(assembler).Finish());
    return absl::OkStatus();
  }));
  v1::Artifact artifact;
  if (!artifact.ParseFromString(bytes)) return absl::DataLossError("the server sent no exported folder");
  return artifact;
}

absl::StatusOr<v1::ListFunctionsResponse> Client::ListFunctions(const std::string& name) {
  v1::ListFunctionsRequest request;
  request.set_name(name);
  return Unary(*optimizer_, &v1::OptimizerService::Stub::ListFunctions, request);
}

absl::StatusOr<v1::ReportModelResponse> Client::ReportModel(const v1::ReportModelRequest& request) {
  return Unary(*optimizer_, &v1::OptimizerService::Stub::ReportModel, request);
}

absl::StatusOr<v1::ListWorkersResponse> Client::ListWorkers() {
  return Unary(*fleet_, &v1::FleetService::Stub::ListWorkers, v1::ListWorkersRequest());
}

absl::StatusOr<v1::Worker> Client::DrainWorker(const std::string& name) {
  v1::DrainWorkerRequest request;
  request.set_name(name);
  return Unary(*fleet_, &v1::FleetService::Stub::DrainWorker, request);
}

absl::StatusOr<std::string> Client::TraceJob(const std::string& name) {
  v1::TraceJobRequest request;
  request.set_name(name);
  FUSION_ASSIGN_OR_RETURN(auto response, Unary(*optimizer_, &v1::OptimizerService::Stub::TraceJob, request));
  return std::move(*response.mutable_trace_json());
}

absl::StatusOr<v1::BackUpResponse> Client::BackUp() {
  return Unary(*admin_, &v1::AdminService::Stub::BackUp, v1::BackUpRequest());
}

absl::StatusOr<v1::ResetModelResponse> Client::ResetModel(const v1::ResetModelRequest& request) {
  return Unary(*admin_, &v1::AdminService::Stub::ResetModel, request);
}

absl::StatusOr<v1::CreateTokenResponse> Client::CreateToken(const v1::CreateTokenRequest& request) {
  return Unary(*admin_, &v1::AdminService::Stub::CreateToken, request);
}

absl::StatusOr<v1::ListTokensResponse> Client::ListTokens() {
  return Unary(*admin_, &v1::AdminService::Stub::ListTokens, v1::ListTokensRequest());
}

absl::StatusOr<v1::Token> Client::RevokeToken(const std::string& name) {
  v1::RevokeTokenRequest request;
  request.set_name(name);
  return Unary(*admin_, &v1::AdminService::Stub::RevokeToken, request);
}

absl::StatusOr<v1::ListAuditEntriesResponse> Client::ListAuditEntries(int page_size,
                                                                      const std::string& page_token) {
  v1::ListAuditEntriesRequest request;
  request.set_page_size(page_size);
  request.set_page_token(page_token);
  return Unary(*admin_, &v1::AdminService::Stub::ListAuditEntries, request);
}

absl::StatusOr<v1::ListTuningsResponse> Client::ListTunings(const std::string& program, int page_size,
                                                            const std::string& page_token) {
  v1::ListTuningsRequest request;
  request.set_program(program);
  request.set_page_size(page_size);
  request.set_page_token(page_token);
  return Unary(*tuner_, &v1::TunerService::Stub::ListTunings, request);
}

absl::StatusOr<v1::TuningDetails> Client::GetTuning(const std::string& name) {
  v1::GetTuningRequest request;
  request.set_name(name);
  return Unary(*tuner_, &v1::TunerService::Stub::GetTuning, request);
}

absl::StatusOr<v1::Tuning> Client::ResetTuning(const std::string& name) {
  v1::ResetTuningRequest request;
  request.set_name(name);
  return Unary(*tuner_, &v1::TunerService::Stub::ResetTuning, request);
}

absl::StatusOr<v1::ListTuningReportsResponse> Client::ListTuningReports(const std::string& name,
                                                                        int page_size,
                                                                        const std::string& page_token) {
  v1::ListTuningReportsRequest request;
  request.set_name(name);
  request.set_page_size(page_size);
  request.set_page_token(page_token);
  return Unary(*tuner_, &v1::TunerService::Stub::ListTuningReports, request);
}

absl::Status Client::WatchTuning(const std::string& name,
                                 const std::function<bool(const v1::Tuning&)>& on_change, seconds patience) {
  v1::WatchTuningRequest request;
  request.set_name(name);
  std::string last;
  return TakeUpAgain(patience, [&](const std::function<void()>& heard) {
    Call call(this);
    std::unique_ptr<grpc::ClientReader<v1::Tuning>> reader = tuner_->WatchTuning(call.context(), request);
    v1::Tuning tuning;
    bool enough = false;
    while (!enough && reader->Read(&tuning)) {
      heard();
      // Each stream begins with the tuning as it is, which may be as it was.
      const std::string seen = tuning.SerializeAsString();
      if (seen != std::exchange(last, seen)) enough = !on_change(tuning);
    }
    if (enough) call.context()->TryCancel();
    const absl::Status end = StreamEnd(reader->Finish());
    return enough ? absl::OkStatus() : end;
  });
}

}  // namespace fusion
